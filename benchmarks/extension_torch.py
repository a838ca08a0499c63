"""Builds the same add with PyTorch's load_inline; see extension.py.

    python extension_torch.py ROUNDS RESULT [COUNT...]

Run by a Python that has torch and ninja. Writes torch's version, the seconds of building, unless
TORCH_EXTENSIONS_DIR has the module, and loading, and the seconds per call.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import torch
from timing import take_turns
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include "add_loop.h"

at::Tensor add(const at::Tensor &x, const at::Tensor &y) {
  at::Tensor z = at::empty_like(x);
  AddLoop(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), x.numel());
  return z;
}
"""


def main(rounds, result, *counts):
    """Builds, times and writes."""
    started_s = time.perf_counter()
    here = str(pathlib.Path(__file__).parent)
    module = load_inline(
        "bench_extension",
        SOURCE,
        functions="add",
        extra_cflags=["-O3"],
        extra_include_paths=[here],
    )
    load_s = time.perf_counter() - started_s
    times = {}
    for count in map(int, counts):
        x, y = torch.randn(2, count)
        assert torch.equal(module.add(x, y), x + y)
        call = {"add": lambda x=x, y=y: module.add(x, y)}
        times[count] = take_turns(call, int(rounds))["add"].seconds
    with open(result, "w") as file:
        json.dump({"version": torch.__version__, "load_s": load_s, "times": times}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
