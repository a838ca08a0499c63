"""Passes of more than one way out, and what they share; `_loops/pipeline.py` lists them.

Modules: axes, batching, conditional_reductions, contract, distribute, drop_starts, expand_carried,
expand_locals, extremes, forward_locals, graph, mark_loops, materialise_guards, privatise, search,
self_orders, shrink_locals, simplify, simplify_expressions, sites, split_at_pivots,
split_running_maxima.
"""
