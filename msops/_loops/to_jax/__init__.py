"""Loop IR as JAX operations.

passes/    what changes a kernel on this way alone, up to distributed loop nests; knows no JAX
raising/   from distributed loop nests to the array operations that compute them; knows no JAX
printing/  from these to JAX operations, the one part of the compiler that imports JAX
"""
