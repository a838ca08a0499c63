"""The passes of the loop compiler, one a file; pipeline.py lists them.

Modules: batching, check_bounds, contract, distribute, drop_starts, expand_locals, find_unwritten,
forward_locals, graph, mark_loops, materialise_guards, pipeline, places, privatise, rename,
self_orders, shrink_locals, simplify, simplify_expressions.
"""
