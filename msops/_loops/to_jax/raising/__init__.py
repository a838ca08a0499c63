"""From the distributed loop nests to the array operations that compute them; knows no JAX.

Modules: carried, classify, conditions, cost, describe, extremes, nests, pools, products,
recurrences, reductions, search, steps, views, windows.
"""
