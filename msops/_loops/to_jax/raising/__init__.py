"""From the distributed loop nests to the array operations that compute them; knows no JAX.

Modules: cost, describe, nests, patterns, products, recurrences, steps, views, windows.
"""
