"""Prints, as JSON, what real MindSpore makes of many op info builder chains and of some calls.

Run by a Python that has mindspore==2.7.2, in an empty folder (pyfunc needs functions in files):

    python dump_op_info.py > op_info_mindspore_2_7_2.json

The result is committed beside this script; tests/test_op_info_*.py compare msops with it. Chains
and dicts are Python literals, since JSON would turn the tuples in them into lists.
"""

import importlib
import itertools
import json
import random
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops import op_info_register as _register_function

builders = importlib.import_module("mindspore.ops.op_info_register")
assert builders is not _register_function

F32, I8, ANY = ("float32", "DefaultFormat"), ("int8", "NC1HWC0"), ("", "")
LIST = ("float32", "DefaultFormat", "list")

CLASSES = {
    "RegOp": [("Add",), (), ("",), ("  ",), (3,)],
    "CpuRegOp": [("Add",), ("",)],
    "AiCPURegOp": [("Add",), (None,)],
    "AkgRegOp": [("Add", "CPU"), ("Add", "odd"), ("Add", 7)],
    "AkgGpuRegOp": [("Add",), (" ",)],
    "AkgAscendRegOp": [("Add",)],
    "AkgCpuRegOp": [("Add",)],
    "CustomRegOp": [(), ("add",), ("",), (b"add",)],
    "TBERegOp": [("Add",), ("",)],
}
EVERYWHERE = {
    "fusion_type": [("ELEMWISE",), (None,), (3,)],
    "dtype_format": [
        (),
        (F32,),
        (F32, F32),
        (F32, ANY, LIST),
        (["float32", ""],),
        (("a",),),
        (("a", "b", "c", "d"),),
        (("float32", 1),),
        (("float32", "", None),),
    ],
}
PORT = [
    (),
    (0, "x"),
    (1, None, "dynamic"),
    (True, "x"),
    ("0", "x"),
    (0, 1),
    (0, "x", "odd"),
    (0, "x", 1),
]
BY_CLASS = {
    "RegOp": {},
    "CpuRegOp": {
        "input": PORT,
        "output": PORT,
        "attr": [(), ("a",), ("a", "int", "1"), ("a", None, "1"), ("a", "int", 1)],
    },
    "AkgRegOp": {
        "input": PORT,
        "output": [(), (0, "y"), (None, "y"), (1.0, "y")],
        "attr": [(), ("a", "required", "int"), ("a", None, "odd"), (1,)],
    },
    "CustomRegOp": {
        "input": [*PORT, (0, "x", None)],
        "output": [*PORT, (0, "y", None)],
        "attr": [
            (),
            ("a", "required", "int"),
            ("a", "optional", "listInt", "1,2"),
            ("a", None, None, "1.0"),
            ("a", "odd", "odd"),
            ("a", "required", "int", 1),
        ],
        "target": [(), ("CPU",), ("odd",), (None,), (1,)],
    },
    "TBERegOp": {
        "input": [
            (),
            (0, "x"),
            (0, "x", True, "required", "all", "Optional"),
            (0, "x", None, "required", None),
            (0, "x", None, None, None, "odd"),
            (0, "x", 1),
            (0, "x", None, None, None, ""),
        ],
        "output": [(), (0, "y", True, "required", "all"), (0, "y", False), (0, "y", "no")],
        "attr": [
            (),
            ("a", "required", "int", "all"),
            ("a", "optional", "bool", "true,false", "false"),
            ("a", "optional", "int", None, 3),
        ],
        "async_flag": [(), (True,), (1,)],
        "binfile_name": [("a.so",), (None,)],
        "compute_cost": [(), (5,), (True,), ("5",)],
        "kernel_name": [("a",), (1,)],
        "partial_flag": [(), (False,), (None,)],
        "reshape_type": [("NC",), (1,)],
        "dynamic_shape": [(), (True,), (0,)],
        "dynamic_rank_support": [(True,), (), ("yes",)],
        "dynamic_compile_static": [(), (True,), (1,)],
        "need_check_supported": [(), (True,), (None,)],
        "is_dynamic_format": [(), (True,), ("a",)],
        "op_pattern": [(), ("reduce",), (None,), (1,)],
        "real_input_index": [([1, 0],), ((1, 0),)],
        "input_to_attr_index": [([2],), (2,)],
        "unknown_shape_formats": [(["ND", "NC"],), ("ND",)],
    },
}
BY_CLASS["AiCPURegOp"] = BY_CLASS["CpuRegOp"]
for _name in ("AkgGpuRegOp", "AkgAscendRegOp", "AkgCpuRegOp"):
    BY_CLASS[_name] = BY_CLASS["AkgRegOp"]
KEYWORDS = [{}, {}, {}, {"shape_note": [1, 2]}, {"value": 3}, {"paramType": "optional"}]


def all_chains():
    """Yields (class, arguments, calls): every argument list once, then random chains."""
    chance = random.Random(0)
    for class_name, arguments in CLASSES.items():
        methods = {**EVERYWHERE, **BY_CLASS[class_name]}
        for args in arguments:
            yield class_name, args, []
        for method, choices in methods.items():
            for args in choices:
                yield class_name, arguments[0], [(method, args, {})]
        for _ in range(30):
            calls = [random_call(chance, methods) for _ in range(chance.randrange(1, 7))]
            ports = sum(name in ("input", "output") for name, _, _ in calls)
            if chance.random() < 0.8:
                rows = [(F32, I8, ANY, LIST)[chance.randrange(4)] for _ in range(ports)]
                calls.append(("dtype_format", tuple(rows), {}))
            yield class_name, chance.choice(arguments), calls


def random_call(chance, methods):
    """Returns a call whose arguments are mostly right, so that long chains seldom fail."""
    method = chance.choice([name for name in methods if name != "dtype_format"] * 2)
    choices = methods[method]
    args = choices[chance.randrange(min(3, len(choices)))]
    takes_keywords = method in ("input", "output", "attr")
    return method, args, chance.choice(KEYWORDS) if takes_keywords else {}


def run_chain(class_name, args, calls):
    """Returns what the chain gives: the dict, or the builtin error type."""
    try:
        builder = getattr(builders, class_name)(*args)
        for method, method_args, keywords in calls:
            assert getattr(builder, method)(*method_args, **keywords) is builder
        return {"info": repr(builder.get_op_info())}
    except (TypeError, ValueError) as error:
        return {"error": type(error).__name__, "text": str(error)}


ROWS = [
    (F32, F32),
    (("", ""), ("", "")),
    (("int32", ""), ("int32", "")),
    (("", "DefaultFormat"), ("float32", "DefaultFormat")),
    (("float32", "NCHW"), ("float32", "NCHW")),
    (("bool", "DefaultFormat"), ("bool", "DefaultFormat")),
    (("uint8", "DefaultFormat"), ("uint8", "DefaultFormat")),
]


def all_calls():
    """Yields (rows, input dtypes) of pyfunc calls whose output has the dtype of the first input."""
    dtypes = ("float16", "float32", "float64", "int32", "int64", "uint8", "bool")
    for row, dtype in itertools.product(ROWS, dtypes):
        yield [row], [dtype]
    for pair in itertools.product(dtypes, repeat=2):
        yield [(F32, F32, F32), (("int32", ""), ("", ""), ("int32", ""))], list(pair)
    for count in (1, 3):
        yield [(F32, F32, F32)], ["float32"] * count


def run_call(number, rows, dtypes):
    """Returns whether a pyfunc with these rows for CPU accepts inputs of these dtypes."""
    builder = builders.CustomRegOp()
    for index in range(len(rows[0]) - 1):
        builder.input(index, f"x{index}")
    builder.output(0, "y")
    for row in rows:
        builder.dtype_format(*row)
    names = ", ".join(f"x{index}" for index in range(len(dtypes)))
    module = f"generated_{number}"
    Path(f"{module}.py").write_text(f"def f{number}({names}):\n    return x0\n")
    importlib.invalidate_caches()
    function = getattr(importlib.import_module(module), f"f{number}")
    op = ops.Custom(
        function,
        lambda *shapes: shapes[0],
        lambda *given: given[0],
        func_type="pyfunc",
        reg_info=builder.target("CPU").get_op_info(),
    )
    try:
        op(*(Tensor(np.ones(3, dtype)) for dtype in dtypes)).asnumpy()
    except TypeError:
        return False
    except RuntimeError as error:
        # Accepted by a row of another float width, whose size the result then does not have.
        if "memcpy failed" not in str(error):
            raise
    return True


def main():
    """Prints the JSON."""
    sys.path.insert(0, ".")
    data_type = builders.DataType
    constants = {n: list(getattr(data_type, n)) for n in dir(data_type) if not n.startswith("_")}
    chains = [{"chain": repr(chain), **run_chain(*chain)} for chain in all_chains()]
    calls = [
        {"rows": repr(rows), "inputs": dtypes, "accepted": run_call(number, rows, dtypes)}
        for number, (rows, dtypes) in enumerate(all_calls())
    ]
    report = {
        "mindspore": ms.__version__,
        "generated_by": "tests/oracle/dump_op_info.py",
        "data_type": constants,
        "chains": chains,
        "calls": calls,
    }
    json.dump(report, sys.stdout, indent=0)
    print()


main()
