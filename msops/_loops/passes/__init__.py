"""The passes of the loop compiler, one a file; pipeline.py lists them.

Modules: batching, check_bounds, conditional_reductions, contract, distribute, drop_starts,
expand_carried, expand_locals, extremes, find_unwritten, forward_locals, graph, mark_loops,
materialise_guards, pipeline, places, privatise, rename, search, self_orders, shrink_locals,
simplify, simplify_expressions.
"""
