"""MindSpore's Hybrid DSL: loop nests over the elements of tensors, written as Python.

`grammar` says what may be written, `names` what each name means; both need no shapes and run
when the op is made. The other modules translate a kernel for the shapes and dtypes of a call.

Modules: arithmetic, bound, calls, counting, early, expressions, grammar, helpers,
indexing, inlining, jumps, kept, kernel, language, loops, names, paths, rewriting,
statement_forms, statements, syntax, translation, typing, values.
"""

from msops._loops.frontends.hybrid.kernel import HybridKernel as HybridKernel
from msops._loops.frontends.hybrid.kernel import read_hybrid as read_hybrid
