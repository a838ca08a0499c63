"""Order: which loop runs inside which, in tiles or side by side, and on which threads.

Decides: the loop that runs along memory, inside; tiles of registers and of the caches; rows that
run side by side; loops written out; the loops that threads share.
From: the kinds of loops, which dependences decided (`analysis.kinds`); the distances in memory
between iterations (`facts.strides`); sizes of caches and registers; the estimate of `cost`.
Literature: Wolf and Lam (PLDI 1991) for loops and tiles; Goto and van de Geijn (TOMS 2008) for
products; Carr and Kennedy (TOPLAS 1994) for unroll-and-jam; Lamport (CACM 1974) for rows behind one
another.

widening.py      sums in variables, with an element for each position
row_blocks.py    rows that take each step, and each product, together
windows.py       loops over small windows, written out as statements
unrolling.py     short inner loops, written out as statements
eliminating.py   sums over earlier elements, as updates of the later ones
exchange.py      two loops in the other order, sums row by row
memory_order.py  loops in the order of memory: outside, innermost or in tiles
products.py      tiles of registers for sums that share what they read
sums.py          sums that fit tiles, and the sizes of tiles
tiles.py         statements of one sum in a tile
packing.py       factors of products in the order of their tiles
triangles.py     rows that read all rows before them, block by block
jamming.py       rows that run in order, side by side in one loop
sharing.py       loops that threads share
"""

from msops._loops.to_c.order.eliminating import update_later_elements
from msops._loops.to_c.order.jamming import unroll_and_jam
from msops._loops.to_c.order.memory_order import order_along_memory
from msops._loops.to_c.order.products import tile_products
from msops._loops.to_c.order.row_blocks import block_rows
from msops._loops.to_c.order.sharing import share_among_threads
from msops._loops.to_c.order.triangles import block_triangles
from msops._loops.to_c.order.unrolling import unroll_short_loops
from msops._loops.to_c.order.widening import widen_sums
from msops._loops.to_c.order.windows import write_out_windows

NESTS = (
    ("widen sums", widen_sums),
    ("block rows", block_rows),
    ("write out windows", write_out_windows),
    ("unroll short loops", unroll_short_loops),
    ("update later elements", update_later_elements),
    ("order along memory", order_along_memory),
    ("tile products", tile_products),
    ("block triangles", block_triangles),
)
"""Of the loops of a nest."""

ROWS = (("unroll and jam", unroll_and_jam),)
"""Of innermost loops and the loops around them."""

THREADS = (("share among threads", share_among_threads),)
"""Of threads."""
