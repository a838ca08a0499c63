"""Clean: values that statements hand to one another are variables; what does nothing is gone.

Decides: which elements of arrays are variables of C while a loop runs, and which copies, stores and
branches are needed at all.
From: the accesses of a loop to one array that surely are the same element, or surely are not
(`passes.elements`); what a loop reads after it wrote it.
Literature: promotion of memory to registers, as for SSA form (Cytron and others, TOPLAS 1991);
scalar replacement of elements that iterations hand on (Callahan, Carr, Kennedy, PLDI 1990), which
gcc calls predictive commoning.

fresh_results.py  parameters that are read as given, instead of copies of them
merging.py        one store of a chosen value instead of a store in each branch
carrying.py       elements that one iteration hands to the next, in variables
promoting.py      elements at fixed places that a loop changes, in variables
reductions.py     of these the sums of innermost reductions
"""

from msops._loops.to_c.clean.carrying import carry_elements
from msops._loops.to_c.clean.fresh_results import write_fresh_results
from msops._loops.to_c.clean.merging import merge_branches
from msops._loops.to_c.clean.promoting import keep_in_variables

IN_PLACE = (("merge branches", merge_branches),)
"""Of statements, where a result may have the memory of a parameter."""

STATEMENTS = (("write fresh results", write_fresh_results), *IN_PLACE)
"""Of statements, where results have memory of their own."""

ELEMENTS = (
    ("keep in variables", keep_in_variables),
    ("carry elements", carry_elements),
)
"""Of elements that loops read again."""
