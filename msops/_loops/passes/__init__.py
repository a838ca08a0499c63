"""The passes of the loop compiler, one a file; pipeline.py lists them."""
