"""Prints, as JSON, what the real MindSpore gives for the expressions of `face_cases`.

Run with MindSpore 2.7.2's Python and keep the output:

    python tests/oracle/dump_face.py > tests/oracle/face_mindspore_2_7_2.json

A case MindSpore refuses is null: there msops is free to do more.
"""

import json
import sys

import face_cases
import mindspore as ms
import numpy as np


def described(value):
    """A tensor as [dtype, shape, values]; tuples, lists and dicts of them with their kind."""
    if isinstance(value, ms.Tensor):
        array = value.asnumpy()
        array = array.astype(np.float32) if "bfloat" in str(array.dtype).lower() else array
        return ["tensor", str(value.dtype), list(value.shape), repr(array.tolist())]
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(described(entry) for entry in value)]
    if isinstance(value, dict):
        return ["dict", *([key, described(entry)] for key, entry in value.items())]
    return ["plain", repr(value)]


def attempt(expression, names, describe):
    """What `describe` makes of the expression's value, or None if MindSpore refuses it."""
    try:
        return describe(eval(expression, names))
    except Exception as error:
        print(f"{expression}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return None


def main():
    """Evaluates all tables of cases."""
    # Errors of kernels would otherwise surface at a later, innocent case.
    ms.set_context(pynative_synchronize=True)
    names = {"ms": ms, "np": np, "__name__": "face_prelude"}
    exec(face_cases.PRELUDE, names)
    tables = {
        "printed": (face_cases.PRINTED, lambda value: [repr(value), str(value)]),
        "plain": (face_cases.PLAIN, repr),
        "computed": (face_cases.COMPUTED, described),
        "gradients": (face_cases.GRADIENTS, described),
        "promoted": (
            face_cases.PROMOTED,
            lambda value: value.asnumpy() is None or str(value.dtype),
        ),
    }
    result = {
        table: {case: attempt(case, names, describe) for case in cases}
        for table, (cases, describe) in tables.items()
    }
    json.dump({"mindspore": ms.__version__, **result}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
