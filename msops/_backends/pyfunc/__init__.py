"""func_type "pyfunc": a Python function on numpy arrays.

Modules: backend.
"""
