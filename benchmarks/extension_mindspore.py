"""Builds the extension in MindSpore and times its calls; see extension.py.

    python extension_mindspore.py SOURCE ROUNDS RESULT [COUNT...]

Run by a Python that has MindSpore 2.7. Writes MindSpore's version, the seconds of building, unless
the folder it runs in has the module, and loading, and by number of elements the seconds per call of
each round.
"""

from __future__ import annotations

import json
import sys
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor
from mindspore.common.api import _pynative_executor
from mindspore.ops import CustomOpBuilder
from timing import take_turns


def timed_load(source, name):
    """Returns the module and the seconds that building and loading it took."""
    started_s = time.perf_counter()
    module = CustomOpBuilder(name, source, backend="CPU").load()
    return module, time.perf_counter() - started_s


def make_call(function, count):
    """Returns one call on `count` elements that waits for the result."""
    values = np.random.default_rng(0).normal(size=(2, count)).astype(np.float32)
    x, y = Tensor(values[0]), Tensor(values[1])
    np.testing.assert_array_equal(function(x, y).asnumpy(), values[0] + values[1])

    def call():
        function(x, y)
        _pynative_executor.sync()

    return call


def main(source, rounds, result, *counts):
    """Builds, times and writes."""
    ms.set_context(device_target="CPU", mode=ms.PYNATIVE_MODE)
    module, load_s = timed_load(source, "bench_extension")
    times = {}
    for count in map(int, counts):
        times[count] = take_turns({"add": make_call(module.add, count)}, int(rounds))["add"].seconds
    with open(result, "w") as file:
        json.dump({"version": ms.__version__, "load_s": load_s, "times": times}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
