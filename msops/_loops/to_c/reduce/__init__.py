"""Reduce: updates that many iterations make become sums of their own.

Decides: whether an element gathers what is added to it, or iterations add to it one after the
other; which sums wait until a loop ends; how many partial results a long reduction has.
From: which iterations update which elements, as their indices say it; which loops are marked as
reductions, so that the order of additions is free.
Literature: partial results of associative updates (Suriana, Adams, Kamil, CGO 2017; TVM's rfactor);
gradients of stencils that gather (Hueckelheim and others, ICPP 2019).

neighbours.py       sums of terms from neighbours, gathered element by element
neighbour_terms.py  terms that a nest adds to neighbours
scattering.py       other loops that add to neighbours, split for vectors
deferring.py        sums that a loop only adds to, after it
networks.py         networks of minima and maxima, on integers
partial_sums.py     long reductions, split into partial sums for threads
separating.py       loops that add to rows beside their own, split for threads
"""

from msops._loops.passes.split_running_maxima import split_running_maxima
from msops._loops.to_c.reduce.deferring import defer_sums
from msops._loops.to_c.reduce.networks import sort_integers
from msops._loops.to_c.reduce.partial_sums import split_reductions
from msops._loops.to_c.reduce.scattering import sum_over_neighbours

UPDATES = (
    ("split running maxima", split_running_maxima),
    ("defer sums", defer_sums),
    ("sum over neighbours", sum_over_neighbours),
)
"""Of updates as the author or a gradient wrote them."""

PARTIAL = (("sort integers", sort_integers), ("split reductions", split_reductions))
"""Of reductions in loops whose order is chosen."""
