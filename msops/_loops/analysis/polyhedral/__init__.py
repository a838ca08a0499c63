"""Exact dependences between the statements of a loop kernel, by isl (the only user of islpy).

Modules: accesses, bounds, counts, dependences, domain, flow, library, promises, side_by_side,
uniform.
"""
