"""The languages kernels are written in, each translated to the loop IR.

A Python function is read once, when its op is made (`read_kernel`), and translated once for each
set of shapes, dtypes and attribute values it is called with (`LoopProgram.specialise`).

Modules: far_ranges, hybrid, program, references, reporting, source, spec, tvm.
"""

from msops._loops.frontends.program import LoopProgram as LoopProgram
from msops._loops.frontends.program import read_kernel as read_kernel
from msops._loops.frontends.spec import Spec as Spec
