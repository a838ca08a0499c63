"""Operators of Ascend's aclnn libraries as JAX code, for C++ written for MindSpore's extension API.

A C++ function names an operator and hands over its arguments in aclnn's order; here it is found in
one table and traced. A file holds one family; a function there has aclnn's name, its parameters in
aclnn's order without the outputs, and annotations from `kinds` that say how each is read.

Source: the headers ``aclnnop/aclnn_*.h`` of CANN 8, and for the names MindSpore 2.7.2's kernels.
"""

from msops._aclnn import activations as _activations
from msops._aclnn import arithmetic as _arithmetic
from msops._aclnn import attention as _attention
from msops._aclnn import backward as _backward
from msops._aclnn import comparisons as _comparisons
from msops._aclnn import creation as _creation
from msops._aclnn import indexing as _indexing
from msops._aclnn import normalization as _normalization
from msops._aclnn import ordering as _ordering
from msops._aclnn import pooling as _pooling
from msops._aclnn import products as _products
from msops._aclnn import reductions as _reductions
from msops._aclnn import shapes as _shapes
from msops._aclnn import unary as _unary
from msops._aclnn.operator import AclnnOp as AclnnOp
from msops._aclnn.table import lookup as lookup
from msops._aclnn.table import names as names
from msops._aclnn.table import register_aclnn as register_aclnn

# Importing a family enters its operators.
FAMILIES = (
    _activations,
    _arithmetic,
    _attention,
    _backward,
    _comparisons,
    _creation,
    _indexing,
    _normalization,
    _ordering,
    _pooling,
    _products,
    _reductions,
    _shapes,
    _unary,
)
