"""From the distributed loop nests to the array operations that compute them; knows no JAX.

Modules: classify, cost, describe, nests, pools, products, recurrences, steps, views, windows.
"""
