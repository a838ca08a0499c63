"""Prints, as JSON, what the real MindSpore gives for functions of special values.

Run with MindSpore 2.10.0's Python and keep the output:

    python tests/oracle/dump_special.py > tests/oracle/special_mindspore_2_10_0.json

A call that MindSpore refuses is left out: there msops is free to do more.
"""

import json
import sys

import mindspore as ms
import numpy as np

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 7.0, -7.0, float("inf"), -float("inf")]
INPUTS = {
    "floats": (FLOATS, "float32"),
    "integers": ([0, 1, -1, 2, -7, 2147483647, -2147483648], "int32"),
    "bytes": ([0, 1, 127, -128], "int8"),
    "empty": ([], "float32"),
    "number": (-2.5, "float32"),
}
_UNARY = (
    "abs ceil cos cosh erf exp expm1 floor isfinite isnan log log1p neg reciprocal relu round "
    "rsqrt sigmoid sign sin sinh sqrt square tan tanh zeros_like ones_like"
)
_BINARY = (
    "add sub mul div floor_div floor_mod pow maximum minimum equal not_equal less less_equal "
    "greater greater_equal"
)


def described(value):
    """A tensor as its dtype, shape and values in order; -0.0 is not 0.0 there."""
    return [str(value.dtype), list(value.shape), repr(value.asnumpy().reshape(-1).tolist())]


def calls():
    """Yields each function with the inputs it gets: all, or all pairs of all."""
    for kind, (data, dtype) in INPUTS.items():
        array = np.array(data, dtype)
        pairs = np.meshgrid(array, array) if array.ndim else (array, array)
        for name in _UNARY.split():
            yield name, kind, (array,)
        for name in _BINARY.split():
            yield name, kind, tuple(pairs)


def main():
    """Evaluates all calls."""
    ms.set_context(pynative_synchronize=True)
    found = {}
    for name, kind, arrays in calls():
        try:
            value = getattr(ms.ops, name)(*map(ms.Tensor, arrays))
            found[f"{name} {kind}"] = described(value)
        except Exception as error:
            print(f"{name} {kind}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    json.dump({"mindspore": ms.__version__, "found": found}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
