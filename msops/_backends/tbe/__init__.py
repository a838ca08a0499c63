"""func_type "tbe": the entry function of a TBE kernel.

Modules: backend.
"""
