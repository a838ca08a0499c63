"""From the distributed loop nests to the array operations that compute them; knows no JAX.

Modules: cost, describe, nests, orders, patterns, pools, products, recurrences, steps, views,
windows.
"""
