"""Passes of more than one way out, and what they share; `_loops/pipeline.py` lists them.

Modules: batching, elements, extremes, forward_locals, keep_decisions, mark_loops, nest_flat_loops,
plain_indices, privatise, search, simplify, simplify_expressions, split_at_pivots,
split_running_maxima, version_ragged_rows.
"""
