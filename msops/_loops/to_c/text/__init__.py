"""Loop IR in C's syntax: what C and CUDA C have in common.

statements.py  statements; the printers of the two dialects say how they print loops and locals
values.py      expressions: constants, functions, conversions
arithmetic.py  operators on numbers
operations.py  operators that numbers and vectors have in common
elements.py    elements of arrays and their indices
known.py       names and types in C, ranges, helpers that are used
dialect.py     where C and CUDA C differ in them
helpers.py     functions that give operations the meaning they have everywhere
names.py       identifiers
syntax.py      small parts of the text
"""

from msops._loops.to_c.text.dialect import Declaration, Dialect
from msops._loops.to_c.text.known import Unproven
from msops._loops.to_c.text.statements import Statements, indented
from msops._loops.to_c.text.syntax import bare
from msops._loops.to_c.text.values import Values

__all__ = ["Declaration", "Dialect", "Statements", "Unproven", "Values", "bare", "indented"]
