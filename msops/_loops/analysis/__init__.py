"""What is known of a kernel without changing it.

ranges.py    values an index can have
affine.py    sums of multiples of expressions
conditions.py  what a condition says of loop variables
updates.py   statements that update an element
polyhedral/  exact dependences between statements, by isl
costs.py     operations and trips, estimated
counts.py    operations, counted
findings.py  what the author should know
"""
