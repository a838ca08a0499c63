"""Prints, as JSON, what the real MindSpore gives for the expressions of `special_cases`.

Run with MindSpore 2.10.0's Python and keep the output:

    python tests/oracle/dump_special.py > tests/oracle/special_mindspore_2_10_0.json

Of each kind of inputs, dtype and expression: dtype, shape and values in PYNATIVE_MODE, those in
GRAPH_MODE where they differ, and the gradients in `x` and `y`. A call that MindSpore refuses, or
that ends its process, is left out: there msops is free to do more.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import special_cases
from mindspore import ops

DIGITS = {"Float64": "{:.12g}", "Float32": "{:.7g}", "Float16": "{:.4g}", "BFloat16": "{:.3g}"}
CELL = """
class Cell{number}(nn.Cell):
    def construct(self, x, y):
        return {expression}
"""


def described(value):
    """Returns a Tensor as text: -0.0 is not 0.0 there, and numbers are as short as they can be."""
    dtype = str(value.dtype)
    if dtype == "BFloat16":
        value = ops.cast(value, ms.float32)
    form = DIGITS.get(dtype, "{}")
    numbers = " ".join(form.format(number) for number in value.asnumpy().reshape(-1).tolist())
    return f"{dtype} {list(value.shape)}: {numbers}"


def cells():
    """Returns a Cell for each expression: GRAPH_MODE reads its source."""
    expressions = sorted({text for row in special_cases.EXPRESSIONS.values() for text in row})
    source = "import mindspore as ms\nfrom mindspore import nn, ops\n" + "".join(
        CELL.format(number=number, expression=text) for number, text in enumerate(expressions)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "special_cells.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("special_cells", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["special_cells"] = module
        spec.loader.exec_module(module)
        yield {text: getattr(module, f"Cell{n}") for n, text in enumerate(expressions)}


def attempt(label, compute):
    """Returns a description of what is computed; None if MindSpore refuses it."""
    try:
        return described(compute())
    except Exception as error:
        print(f"{label}: {(str(error) or '?').splitlines()[0][:100]}", file=sys.stderr)
        return None


def rows():
    """Yields all rows of the table: kind, dtype and expression."""
    for kind, expressions in special_cases.EXPRESSIONS.items():
        for dtype in special_cases.DTYPES:
            for text in expressions:
                yield kind, dtype, text


def evaluate(made, kind, dtype, text):
    """Returns what MindSpore gives for a row; None if it refuses the expression."""
    label = f"{text} {kind} {dtype}"
    typed = getattr(ms, "bool_" if dtype == "bool" else dtype)
    inputs = [ms.Tensor(array, typed) for array in special_cases.inputs(kind, dtype)]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    value = attempt(label, lambda: made[text]()(*inputs))
    if value is None:
        return None
    row = {"value": value}
    for position, name in enumerate(special_cases.slopes(kind, dtype, text)):
        slope = attempt(f"{label} d{name}", lambda at=position: ms.grad(made[text](), at)(*inputs))
        if slope:
            row[f"d{name}"] = slope
    if special_cases.has_graph(kind, dtype):
        ms.set_context(mode=ms.GRAPH_MODE)
        graph = attempt(label, lambda: made[text]()(*inputs))
        if graph and graph != value:
            row["graph"] = graph
    return row


def work(start):
    """Evaluates the rows from `start` on, and prints a line before and after each."""
    ms.set_context(pynative_synchronize=True)
    for made in cells():
        for number, row in enumerate(rows()):
            if number >= start:
                print("begin", number, flush=True)
                print("end", number, json.dumps(evaluate(made, *row)), flush=True)


def add(rows, text, row):
    """Adds a row: a result without slopes as itself, and the name of an equal row for a row."""
    row = row if len(row) > 1 else row["value"]
    rows[text] = next((name for name, known in rows.items() if known == row), row)


def main():
    """Evaluates all rows; where MindSpore ends its process, another one goes on behind the row."""
    found, begun = {}, -1
    listed = list(rows())
    while begun + 1 < len(listed):
        command = [sys.executable, __file__, str(begun + 1)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in worker.stdout:
            what, _, rest = line.partition(" ")
            number, _, result = rest.partition(" ")
            if what == "begin":
                begun = int(number)
            elif what == "end" and (row := json.loads(result)):
                kind, dtype, text = listed[int(number)]
                add(found.setdefault(kind, {}).setdefault(dtype, {}), text, row)
        if worker.wait() and begun + 1 < len(listed):
            print("ended its process:", *listed[begun], file=sys.stderr)
    json.dump({"mindspore": ms.__version__, "found": found}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    work(int(sys.argv[1])) if len(sys.argv) > 1 else main()
