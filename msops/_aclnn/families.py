"""The families of operators: importing one enters its operators into the table."""

from msops._aclnn import (
    activations,
    arithmetic,
    attention,
    backward,
    comparisons,
    creation,
    indexing,
    normalization,
    ordering,
    pooling,
    products,
    reductions,
    shapes,
    unary,
)

FAMILIES = (
    activations,
    arithmetic,
    attention,
    backward,
    comparisons,
    creation,
    indexing,
    normalization,
    ordering,
    pooling,
    products,
    reductions,
    shapes,
    unary,
)
