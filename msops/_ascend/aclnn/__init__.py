"""Operators of Ascend's aclnn libraries as JAX code, for C++ written for MindSpore's extension API.

A C++ function names an operator and hands over its arguments in aclnn's order; here it is found in
one table and traced. A file holds one family; a function there has aclnn's name, its parameters in
aclnn's order without the outputs, and annotations from `kinds` that say how each is read.

Source: the headers ``aclnnop/aclnn_*.h`` of CANN 8, and for the names MindSpore 2.7.2's kernels.

Modules: activations, arithmetic, backward, caches, comparisons, convolution, creation,
deformable_attention, dtypes, dynamic_quantization, families, flash_attention, indexing, kinds,
losses, mixture, normalization, operator, optimizers, ordering, outputs, pooling, products,
quantization, random, reductions, refusal, registry, rotary, sequences, shapes, sparse_attention,
table, unary.
"""

from msops._ascend.aclnn.operator import AclnnOp as AclnnOp
from msops._ascend.aclnn.registry import PREFIX as PREFIX
from msops._ascend.aclnn.registry import lookup as lookup
from msops._ascend.aclnn.registry import names as names
from msops._ascend.aclnn.registry import register_aclnn as register_aclnn
