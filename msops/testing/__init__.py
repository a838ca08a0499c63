"""Checks of kernels: `opcheck`, and what it returns.

opcheck.py          the entrance, and the list of checks
report.py           findings and their table
subject.py          the op with its arguments, and ways to run it
other_inputs.py     arguments that the author did not give
bad_inputs.py       arguments that an op may have to refuse
memory.py           what a kernel does to memory, from runs between guard pages
memory_runs.py      these runs, by what differs between them
bounds.py           accesses outside of its buffers, to the byte
guarded.py          these runs, in a process of their own
child_processes.py  how that process is started
child/              what it runs
spent_time.py       how much of its time a call has used
python_calls.py     Python functions, stopped in time
python_settings.py  what they change of their process
sizes.py            other sizes and ranks
values.py           other numbers
refusals.py         other dtypes
attributes.py       the op with other values of its attributes
attribute_values.py which values
code_constants.py   words and numbers that the code of a kernel names
exceptions.py       those that are raised on purpose, and accidents
trials.py           the op on these, and what came of it
repeats.py          results that repeat where inputs do
multiples.py        what holds for inputs that are repeated a few times, and many times
turns.py            results that do not follow the order of calls
orders.py           results that follow the order of inputs
lists.py            lists of other lengths
lone_zeros.py       a zero among other numbers
exponentials.py     results between an exponential that overflows and one that is 0
low_bits.py         large integers that went by way of floats, or overflow
narrow_rows.py      rows of op info in whose dtypes a number on the way may be none
untouched.py        elements that are 0 whatever the inputs are
size_one.py         one place along an axis, for which results are NaN
lone_places.py      one place that has another result than all others
corners.py          the first and the last place, and what they depend on
symbols.py          whose functions a library uses
transformations.py  shapes; jit, threads and sharding against plain calls
lent_threads.py     loops on XLA's threads against one thread
batches.py          vmap, and vmap of vmap, against loops
forms.py            XLA's operations and C of a loop kernel
form_runs.py        its runs in either form, and gradients
gradients.py        gradients against finite differences, under jit and vmap
finite_differences.py  how far a derivative lies from them
gradient_points.py  where they are compared
long_gradients.py   gradients of many elements
dtype_gradients.py  gradients in a narrower dtype
cotangents.py       rules at cotangents of 0, of any size, and NaN
sanitizers.py       builds of the source with the sanitizers
tolerances.py       how far results may lie apart
"""

from msops.testing.opcheck import opcheck
from msops.testing.report import Finding, Report

__all__ = ["Finding", "Report", "opcheck"]
