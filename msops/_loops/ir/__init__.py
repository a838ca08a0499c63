"""The loop IR: frozen nodes, their text, and what every pass shares. It knows no JAX.

nodes.py       kernels, loops, statements, expressions
intrinsics.py  functions and operators: names, dtypes of results
scalars.py     what an operation on single values means
text.py        a kernel as text
walk.py        visiting and rewriting
names.py       fresh names
sizes.py       sizes in bytes, and their limits
"""
