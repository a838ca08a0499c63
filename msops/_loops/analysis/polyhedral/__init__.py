"""Exact dependences between the statements of a loop kernel, by isl (the only user of islpy).

Importing a module of this package imports islpy; `import msops` does not.

Modules: accesses, bounds, counts, dependences, domain, flow, library, promises, side_by_side.
"""
