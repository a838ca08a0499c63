"""Analyses of a kernel; they change nothing.

affine.py    sums of multiples of expressions
conditions.py  what a condition says of loop variables, and of its loop
kinds.py     which loops may run in any order
updates.py   statements that update an element
boxes.py     boxes of elements in an array
polyhedral/  exact dependences between statements, by isl
costs.py     operations and trips, estimated
findings.py  what the author should know
"""
