"""What the mechanisms ask about a kernel, and what they build with.

blocks.py      loops over blocks and groups of iterations
bodies.py      bodies of loops without their locals
moving.py      indices that move evenly with a loop
rows.py        rows that a loop reads, positions that it writes
skewing.py     rows that run side by side with a lag
strides.py     distances in memory between the elements that a loop touches
work.py        the amount of arithmetic in statements and expressions
"""
