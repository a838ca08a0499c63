"""The loop IR: frozen nodes, their text, and what every pass shares. It knows no JAX.

nodes.py       kernels, loops, statements, expressions
facts.py       what is known of a node stays with it
functions.py   the mathematical functions, one row each: what they mean, and every form of them
formulas.py    the text in which the table says what a function is in terms of others
float32_c.py   C code of functions on float that vectorises
operators.py   operators: signs, dtypes of results
scalars.py     what an operation on single values means
text.py        a kernel as text
ranges.py      values an index can have
contents.py    values that variables and arrays of integers can have
building.py    nodes whose dtype follows from their operands
algebra.py     nodes with what is trivial left out: products with 1, sums with 0
mirror.py      variables of loops counted from the last iteration
walk.py        visiting and rewriting, with what is in scope
elements.py    whether the elements exist that accesses touch
names.py       fresh names
sizes.py       sizes in bytes
"""
