"""From the distributed loop nests to the array operations that compute them; knows no JAX."""
