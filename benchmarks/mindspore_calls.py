"""Times add in MindSpore. Run by a Python that has it; see mindspore_column.py.

    python mindspore_calls.py LIBRARY ROUNDS RESULT COUNT...

Writes to RESULT, as JSON, MindSpore's version, and by "kernel mode" and number of elements the
seconds per call of each round. Runs on MindSpore 2.0 and later, Python 3.9 and later.
"""

from __future__ import annotations

import json
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.api import _pynative_executor
from timing import take_turns


class Net(nn.Cell):
    """A network of one op, which is how an op is called in graph mode."""

    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, x, y):
        """Calls the op."""
        return self.op(x, y)


def make_op(func, func_type):
    """Returns a Custom op that adds."""
    return ops.Custom(func, lambda x, y: x, lambda x, y: x, func_type=func_type)


def make_call(function, count):
    """Returns one call of `function` on `count` elements that waits for the result."""
    values = np.random.default_rng(0).normal(size=(2, count)).astype(np.float32)
    x, y = Tensor(values[0]), Tensor(values[1])
    np.testing.assert_array_equal(function(x, y).asnumpy(), values[0] + values[1])

    def call():
        function(x, y)
        # Calls are asynchronous; this waits without copying the result as asnumpy might.
        _pynative_executor.sync()

    return call


def main(library, rounds, result, *counts):
    """Times every op in both modes."""
    ms.set_context(device_target="CPU")
    made = {
        "aot": make_op(f"{library}:Add", "aot"),
        "pyfunc": make_op(lambda x, y: x + y, "pyfunc"),
    }
    times = {}
    for mode, number in (("eager", ms.PYNATIVE_MODE), ("graph", ms.GRAPH_MODE)):
        ms.set_context(mode=number)
        functions = {name: Net(op) if mode == "graph" else op for name, op in made.items()}
        if mode == "eager":
            functions["tensor"] = lambda x, y: x + y
        for count in map(int, counts):
            calls = {
                f"{name} {mode}": make_call(function, count) for name, function in functions.items()
            }
            for name, measured in take_turns(calls, int(rounds)).items():
                times.setdefault(name, {})[count] = measured.seconds
    with open(result, "w") as file:
        json.dump({"version": ms.__version__, "times": times}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
