"""`topi`: operators on whole tensors, each a few stages of `compute`.

Source: names, signatures and results observed on AKG of MindSpore 2.0.0.

Modules: creation, elementwise, indexing, nn, products, reduction, shapes, transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msops._loops.frontends.tvm.tensor import bind_operators
from msops._loops.frontends.tvm.topi import (
    creation,
    elementwise,
    indexing,
    nn,
    products,
    reduction,
    transform,
)

NN_NAMES: dict[str, Callable[..., Any]] = {
    "batch_matmul": products.batch_matmul,
    "concatenate": transform.concatenate,
    "dense": products.dense,
    "dilate": nn.dilate,
    "flatten": nn.flatten,
    "l2_normalize": nn.l2_normalize,
    "leaky_relu": nn.leaky_relu,
    "log_softmax": nn.log_softmax,
    "lrn": nn.lrn,
    "mirror_pad": nn.mirror_pad,
    "pad": nn.pad,
    "pool": nn.pool,
    "prelu": nn.prelu,
    "relu": nn.relu,
    "scale_shift_nchw": nn.scale_shift_nchw,
    "scale_shift_nhwc": nn.scale_shift_nhwc,
    "softmax": nn.softmax,
    "strided_slice": transform.strided_slice,
}
"""What `topi.nn` holds."""

NAMES: dict[str, Callable[..., Any]] = {
    **elementwise.UNARY,
    **elementwise.BINARY,
    "all": reduction.all_over,
    "any": reduction.any_over,
    "arange": creation.arange,
    "argmax": reduction.argmax,
    "argmin": reduction.argmin,
    "bitwise_not": elementwise.bitwise_not,
    "broadcast_to": elementwise.broadcast_to,
    "cast": elementwise.cast,
    "clip": elementwise.clip,
    "concatenate": transform.concatenate,
    "elemwise_sum": elementwise.elemwise_sum,
    "expand_dims": transform.expand_dims,
    "expand_like": transform.expand_like,
    "flip": transform.flip,
    "full": creation.full,
    "full_like": creation.full_like,
    "gather_nd": indexing.gather_nd,
    "logical_not": elementwise.logical_not,
    "matmul": products.matmul,
    "max": reduction.max_over,
    "min": reduction.min_over,
    "ndarray_size": creation.ndarray_size,
    "one_hot": indexing.one_hot,
    "ones_like": creation.ones_like,
    "prod": reduction.prod_over,
    "reinterpret": elementwise.reinterpret,
    "repeat": transform.repeat,
    "reshape": transform.reshape,
    "sequence_mask": indexing.sequence_mask,
    "shape": creation.shape,
    "split": transform.split,
    "squeeze": transform.squeeze,
    "stack": transform.stack,
    "strided_slice": transform.strided_slice,
    "sum": reduction.sum_over,
    "take": indexing.take,
    "tensordot": products.tensordot,
    "tile": transform.tile,
    "transpose": transform.transpose,
    "where": elementwise.where,
    "zeros_like": creation.zeros_like,
}
"""What `topi` holds."""

_OPERATORS = {
    "add": NAMES["add"],
    "sub": NAMES["subtract"],
    "mul": NAMES["multiply"],
    "truediv": NAMES["divide"],
    "floordiv": NAMES["floor_divide"],
    "mod": NAMES["floor_mod"],
    "lshift": NAMES["left_shift"],
    "rshift": NAMES["right_shift"],
    "and": NAMES["bitwise_and"],
    "or": NAMES["bitwise_or"],
    "xor": NAMES["bitwise_xor"],
}

bind_operators(_OPERATORS, NAMES["negative"], elementwise.cast)
