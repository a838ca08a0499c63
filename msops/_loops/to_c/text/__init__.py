"""Loop IR in C's syntax: what C and CUDA C have in common.

statements.py  CLike: statements; the printers of the two languages derive from it
values.py      expressions and elements of arrays
helpers.py     functions that give operations the meaning they have everywhere
names.py       identifiers
syntax.py      small parts of the text
"""

from msops._loops.to_c.text.statements import CLike, indented
from msops._loops.to_c.text.syntax import bare
from msops._loops.to_c.text.values import Unproven

__all__ = ["CLike", "Unproven", "bare", "indented"]
