"""TVM compute, `topi` and the IR builder, translated to the loop IR.

A kernel function is run once for given shapes, in a copy whose `tvm`, `topi` and `akg` are the
modules of modules.py. Tensors remember what makes them; `lower` turns those reachable from the
results into one kernel. Nodes name buffers and variables by keys that are unique in the process, so
nothing here has state; lowering replaces them by readable names.

Modules: akg_utils, arithmetic, buffer, compute, differentiate, dtypes, expr, extern, intrin,
ir_builder, kernel_module, lower, marks, modules, rebinding, reduce, script, specialise, tensor,
topi, tracing.
"""

from msops._loops.frontends.tvm.lower import lower as lower
from msops._loops.frontends.tvm.modules import MODULES as MODULES
from msops._loops.frontends.tvm.specialise import specialise as specialise
