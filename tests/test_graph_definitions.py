"""What op_def may say of a graph operator; what MindSpore's generator refuses is refused."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from msops.errors import BuildError
from msops.ops import CustomOpBuilder

SOURCES = Path(__file__).parent / "extensions"
ARGS = "args: {x: {dtype: tensor}}"
RETURNS = "returns: {y: {dtype: tensor}}"


def operator(*lines: str, name: str = "f") -> str:
    """Returns the YAML of an operator."""
    return f"{name}:\n" + "".join(f"  {line}\n" for line in lines)


# What the file says, what msops says, and whether MindSpore 2.10.0's generator refuses it, too.
MALFORMED = {
    "not YAML": ("f: [", "cannot be read as YAML", True),
    "a tab": ("f:\n\targs:", "cannot be read as YAML", True),
    "an empty file": ("", "got an empty file", True),
    "a list": ("- f", "map names of operators to what they are; got list", True),
    "an operator without keys": ("f:", "the operator to be a mapping; got NoneType", True),
    "the operator's name": (operator(ARGS, RETURNS, name="f-1"), "identifier; got 'f-1'", False),
    "a keyword as a name": (operator(ARGS, RETURNS, name="class"), "got 'class'", False),
    "the same key twice": (
        operator(ARGS, ARGS, RETURNS),
        "the key 'args' stands here twice",
        False,
    ),
    "a list as a key": ("? [f]\n: 1", "found unhashable key", True),
    "a date that is none": (
        operator("args: {x: {dtype: int, default: 2020-13-45}}", RETURNS),
        "month must be in",
        True,
    ),
    "files that hold themselves": ("&a f: *a", "cannot be read as YAML|to be a mapping", True),
    "a key of an operator": (operator(ARGS, RETURNS, "arg: 1"), "of the operator; got arg", True),
    "no args": (operator(RETURNS), "args is missing", True),
    "no returns": (operator(ARGS), "returns is missing", True),
    "empty args": (operator("args:", RETURNS), "args to map at least one name", True),
    "empty returns": (operator(ARGS, "returns:"), "returns to map at least one name", True),
    "a key of an argument": (
        operator("args: {x: {dtype: tensor, defaults: 1}}", RETURNS),
        "of argument 'x'; got defaults",
        True,
    ),
    "an argument without dtype": (
        operator("args: {x: {}}", RETURNS),
        "dtype of argument 'x'",
        True,
    ),
    "an unknown dtype": (operator("args: {x: {dtype: double}}", RETURNS), "got 'double'", False),
    "a default before none": (
        operator("args: {x: {dtype: int, default: 1}, y: {dtype: tensor}}", RETURNS),
        "argument 'x' has a default and argument 'y' behind it has none",
        False,
    ),
    "a default that is no value": (
        operator("args: {x: {dtype: str, default: sum}}", RETURNS),
        "the text of a Python value; got 'sum'",
        False,
    ),
    "prim_init": (
        operator("args: {x: {dtype: int, prim_init: True}}", RETURNS),
        "argument 'x' has prim_init: True",
        False,
    ),
    "an unknown handler": (
        operator("args: {x: {dtype: int, arg_handler: to_triple}}", RETURNS),
        "arg_handler of argument 'x' .* got 'to_triple'",
        False,
    ),
    "an unknown type_cast": (
        operator("args: {x: {dtype: int, type_cast: complex}}", RETURNS),
        "type_cast of argument 'x' .* got 'complex'",
        False,
    ),
    "a flag that is none": (
        operator("args: {x: {dtype: int, disable_tensor_to_scalar: 1}}", RETURNS),
        "true or false; got 1",
        False,
    ),
    "a key of args_signature": (
        operator(ARGS, RETURNS, "args_signature: {rw: x}"),
        "of args_signature; got rw",
        True,
    ),
    "rw_write of nobody": (
        operator(ARGS, RETURNS, "args_signature: {rw_write: z}"),
        "rw_write to name arguments; there is no argument 'z'",
        True,
    ),
    "rw_read of nobody": (
        operator(ARGS, RETURNS, "args_signature: {rw_read: 'x, z'}"),
        "rw_read to name arguments; there is no argument 'z'",
        True,
    ),
    "dtype_group of nobody": (
        operator(ARGS, RETURNS, "args_signature: {dtype_group: '(x, z)'}"),
        "dtype_group to name arguments; there is no argument 'z'",
        True,
    ),
    "dtype_group without parentheses": (
        operator(ARGS, RETURNS, "args_signature: {dtype_group: 'x'}"),
        "dtype_group as names in parentheses; got 'x'",
        False,
    ),
    "a key of a result": (
        operator(ARGS, "returns: {y: {dtype: tensor, in_place: x}}"),
        "of result 'y'; got in_place",
        True,
    ),
    "a result without dtype": (operator(ARGS, "returns: {y: {}}"), "dtype of result 'y'", True),
    "a result that is no tensor": (
        operator(ARGS, "returns: {y: {dtype: int}}"),
        "expected dtype tensor of result 'y'; got int",
        False,
    ),
    "inplace of nobody": (
        operator(ARGS, "returns: {y: {dtype: tensor, inplace: z}}"),
        "inplace of result 'y' to name a tensor of args; got 'z'",
        False,
    ),
    "a key of function": (operator(ARGS, RETURNS, "function: {named: g}"), "got named", True),
    "the name of function": (operator(ARGS, RETURNS, "function: {name: 3}"), "got 3", False),
    "disable of function": (operator(ARGS, RETURNS, "function: {disable: 3}"), "got 3", True),
    "a key of class": (operator(ARGS, RETURNS, "class: {named: G}"), "got named", True),
    "disable of class": (operator(ARGS, RETURNS, "class: {disable: 3}"), "got 3", True),
    "a key of dispatch": (operator(ARGS, RETURNS, "dispatch: {TPU: a}"), "got TPU", True),
    "enable of dispatch": (operator(ARGS, RETURNS, "dispatch: {enable: 3}"), "got 3", True),
    "view is no flag": (operator(ARGS, RETURNS, "view: 3"), "view true or false; got 3", True),
    "view": (operator(ARGS, RETURNS, "view: True"), "the argument's own memory", False),
    "graph_view": (operator(ARGS, RETURNS, "graph_view: True"), "the argument's own memory", False),
    "labels": (operator(ARGS, RETURNS, "labels: {a: [1]}"), "labels to map names to flags", False),
}


def build(folder: Path, **files: str) -> None:
    """Builds a module with these files as op_def; there is no source to compile."""
    paths = []
    for name, text in files.items():
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(text)
    CustomOpBuilder("m", folder / "none.cpp", op_def=[str(path) for path in paths]).build()


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_definition(tmp_path, what):
    text, expected, _ = MALFORMED[what]
    with pytest.raises(BuildError, match=expected) as caught:
        build(tmp_path, ops=text)
    assert "ops.yaml" in str(caught.value)


def test_an_operator_in_two_files(tmp_path):
    text = operator(ARGS, RETURNS)
    with pytest.raises(BuildError, match=r"'f' is in .*one.yaml and in .*two.yaml"):
        build(tmp_path, one=text, two=text)


def test_files_that_are_none(tmp_path):
    for error in (FileNotFoundError, ValueError):
        with pytest.raises(error, match=r"there is no file .*absent.yaml"):
            CustomOpBuilder("m", "a.cpp", op_def=str(tmp_path / "absent.yaml")).build()
    text = tmp_path / "ops.txt"
    text.write_text(operator(ARGS, RETURNS))
    with pytest.raises(ValueError, match=r"that end in .yaml or .yml; got .*ops.txt"):
        CustomOpBuilder("m", "a.cpp", op_def=[str(text)]).load()
    good = text.rename(tmp_path / "ops.yml")
    with pytest.raises(FileNotFoundError, match=r"expected op_doc to name files"):
        CustomOpBuilder("m", "a.cpp", op_def=str(good), op_doc=("absent.yaml",)).build()


@pytest.mark.slow
def test_an_operator_without_an_infer_class(tmp_path):
    (tmp_path / "ops.yaml").write_text(operator(ARGS, RETURNS, name="forgotten"))
    (tmp_path / "ops.cpp").write_text(
        '#include "ms_extension/api.h"\nPYBIND11_MODULE(MS_EXTENSION_NAME, m) {}\n'
    )
    builder = CustomOpBuilder(
        "m", tmp_path / "ops.cpp", op_def=str(tmp_path / "ops.yaml"), cflags="-O0"
    )
    assert Path(builder.build()).is_file()
    with pytest.raises(
        BuildError, match=r"operator 'forgotten' of op_def has no infer class in the sources"
    ):
        builder.load()


MINDSPORE = os.environ.get("MSOPS_TEST_MINDSPORE", "")


@pytest.mark.slow
@pytest.mark.skipif(not MINDSPORE, reason="MSOPS_TEST_MINDSPORE names no Python with MindSpore")
@pytest.mark.parametrize("what", MALFORMED)
def test_mindspores_generator_refuses_the_same(tmp_path, what):
    """MSOPS_TEST_MINDSPORE is a Python that has MindSpore 2.10.0 and PyYAML."""
    text, _, is_refused = MALFORMED[what]
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "ops.yaml").write_text(text)
    script = textwrap.dedent("""
        import importlib.util, os, runpy, sys
        root = os.path.dirname(importlib.util.find_spec("mindspore").origin)
        sys.path.insert(0, os.path.join(root, "ops_generate"))
        runpy.run_path(os.path.join(root, "ops_generate", "gen_custom_ops.py"), run_name="__main__")
    """)
    (tmp_path / "out").mkdir()
    options = ["-i", str(tmp_path / "yaml"), "-o", str(tmp_path / "out"), "-m", "m", "-d", ""]
    done = subprocess.run(
        [MINDSPORE, "-c", script, *options], capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == is_refused, done.stderr
