"""Times one loop kernel in MindSpore, compiled by AKG. Run by a Python that has it.

    python mindspore_loops.py NAME ROUNDS

Reads inputs.npz and writes result.json in the working directory: MindSpore's version, the seconds
of the first call, and the seconds per call of each round.
"""

from __future__ import annotations

import json
import sys
import time

import loop_kernels
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.common.api import _pynative_executor
from timing import take_turns

_SHAPES = {
    "row_sum": lambda a: [a[0]],
    "column_sum": lambda a: [a[1]],
    "full_sum": lambda a: [1],
    "max_pool": lambda a: [a[0] // 2, a[1] // 2],
    "transpose": lambda a: [a[1], a[0]],
    "matmul": lambda a, b: [a[0], b[1]],
    "batched_matmul": lambda a, b: [a[0], a[1], b[2]],
    "conv2d": lambda a, w: [w[0], a[1] - 2, a[2] - 2],
    "outer": lambda a, b: [a[0], b[0]],
    "gather": lambda a, idx: [idx[0], a[1]],
    "triangular_solve": lambda a, y: y,
    "edit_distance": lambda s, t: [s[0] + 1, t[0] + 1],
}


def main(name, rounds):
    """Times the kernel."""
    ms.set_context(device_target="CPU", mode=ms.PYNATIVE_MODE)
    arrays = np.load("inputs.npz")
    inputs = [Tensor(arrays[key]) for key in arrays.files]
    start = time.perf_counter()
    op = ops.Custom(
        getattr(loop_kernels, name),
        _SHAPES.get(name, lambda x, *_: x),
        lambda x, *_: x,
        func_type="akg",
    )
    op(*inputs).asnumpy()
    first_s = time.perf_counter() - start

    def call():
        op(*inputs)
        # Calls are asynchronous; this waits without copying the result as asnumpy might.
        _pynative_executor.sync()

    seconds = take_turns({name: call}, int(rounds))[name].seconds
    with open("result.json", "w") as file:
        json.dump({"version": ms.__version__, "first_s": first_s, "seconds": seconds}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
