"""``%load_ext msops``: the cell magic ``%%aot``, a C++ kernel written, built and bound in a cell.

    magic.py         the magic: options, and the pipeline from cell to ops
    line.py          which functions the line binds, and which option is for which op
    kernel_text.py   finding kernels, and functions that are none, in C++ text
    gradient.py      a kernel as the bprop of another

Only `msops.load_ipython_extension` imports this package, so IPython is needed nowhere else.
"""

from msops._tools.notebook.magic import load_ipython_extension as load_ipython_extension
