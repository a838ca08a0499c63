"""The loop IR: frozen nodes, their text, and what every pass shares. It knows no JAX.

nodes.py       kernels, loops, statements, expressions
facts.py       what is known of a node stays with it
functions.py   the mathematical functions, one row each: what they mean, and every form of them
formulas.py    the text in which the table says what a function is in terms of others
float32_c.py   C code of functions on float that vectorises
operators.py   operators: signs, dtypes of results; sizes in bytes
scalars.py     what an operation on single values means
text.py        a kernel as text, and where in its author's source a message points
ranges.py      values that an index, a variable or an array of integers can have
algebra.py     nodes of the dtype of their operands, or with what is trivial left out
mirror.py      variables of loops counted from the last iteration
walk.py        visiting and rewriting, with what is in scope
names.py       fresh names
"""
