"""Prints, as JSON, what the real MindSpore gives for the cases in `small_cases`.

Run with MindSpore 2.10.0's Python and keep the output:

    python tests/oracle/dump_small.py > tests/oracle/small_mindspore_2_10_0.json

A file holds cells, each after a line "# %% name". What stands before the first belongs to each of
them. The value of a case is that of the cell's last expression; names of earlier cells stay.
"""

import ast
import json
import pathlib
import re
import sys
import tempfile
import types

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "small_cases"


def cells(path):
    """Yields the name and the code of the prelude, named "", and of each case of a file."""
    head, *rest = re.split(r"^# %% (.+)\n", path.read_text(), flags=re.M)
    yield "", head
    yield from zip(rest[::2], rest[1::2], strict=True)


def run(code, names, folder):
    """Runs a cell as a file of a folder; returns the value of its last expression."""
    file = folder / f"cell{len(list(folder.iterdir()))}.py"
    file.write_text(code)
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), file, "eval"), names)


def described(value, tensor):
    """A Tensor as its dtype, shape and entries; tuples, lists and dicts of them; others as text."""
    if isinstance(value, tensor):
        array = value.asnumpy()
        array = array.astype(np.float32) if "bfloat" in str(array.dtype) else array
        entries = [float(f"{x:.5g}") if array.dtype.kind == "f" else x for x in array.ravel()]
        return [str(value.dtype), list(value.shape), repr([np.asarray(x).item() for x in entries])]
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [described(entry, tensor) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), described(entry, tensor)] for key, entry in value.items()]}
    return re.sub(r" at 0x\w+", "", repr(value))


def answers(module, path):
    """Returns the answer to each case of a file: a description, or the error's classes."""
    # MindSpore's compiler looks for the source of functions in the file of their module.
    cases = sys.modules["small_cases"] = types.ModuleType("small_cases")
    cases.__file__ = str(path)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, code in cells(path):
            try:
                value = run(code, vars(cases), pathlib.Path(folder))
                found[name] = described(value, module.Tensor)
            except Exception as error:
                if not name:
                    raise
                found[name] = {"error": [kind.__name__ for kind in type(error).__mro__]}
                text = f"{path.stem}, {name}: {type(error).__name__}: {error}"
                print(text[:300], file=sys.stderr)
            finally:
                module.set_context(mode=module.PYNATIVE_MODE)
    del found[""], sys.modules["small_cases"]
    return found


def main():
    """Answers the cases of all files."""
    import mindspore

    mindspore.set_context(pynative_synchronize=True)
    found = {path.stem: answers(mindspore, path) for path in sorted(FOLDER.glob("*.py"))}
    json.dump({"mindspore": mindspore.__version__, "found": found}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
