"""Every wrong use has an error that says who, expected, got and what to do; nothing crashes."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from conftest import KERNELS
from custom_ops import FLOAT_OPS, aot, first, horner, loops, matmul, multiply, scale_sum_info

import msops
from msops import Custom, Tensor, errors, ops
from msops.ops import CustomRegOp, DataType

X = jnp.array([1.0, 2.0, 4.0])
M = jnp.ones((2, 3))
SOME_FUNCTION = np.sin


def scale_sum() -> Custom:
    return aot("ScaleSum", lambda x, scale: x[:1], first, reg_info=scale_sum_info())


def float_info() -> dict[str, Any]:
    return (
        CustomRegOp()
        .input(0, "x")
        .input(1, "y")
        .output(0, "out")
        .dtype_format(DataType.F32_Default, DataType.F32_Default, DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )


def guarded() -> Custom:
    return aot("Multiply", reg_info=float_info())


def endless(first: Any) -> list[Any]:
    holder = [first]
    holder.append(holder)
    return holder


ENDLESS = (
    "Custom 'AddAll': expected arrays, or lists and dicts of them; got a list or dict that holds "
    "itself, or is nested too deep.\nPass each array by itself, or in one flat list."
)


def doubled() -> Custom:
    return Custom(double, func_type="akg")


def double(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
    return y


async def suspended(x):
    return x


class WrapsItself:
    def __getattr__(self, name: str) -> Any:
        return self


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "missing file": (
        lambda: Custom("/nowhere/add.cc:Add", first, first),
        errors.BuildError,
        "Custom 'Add': there is no file /nowhere/add.cc.\n"
        "There is no folder /nowhere either; relative paths start at {cwd}.",
    ),
    "missing symbol": (
        lambda: aot("Multipl")(X, X),
        errors.BuildError,
        "Custom 'Multipl': float_ops.cc exports no function Multipl, but does export:\n"
        "  Multiply\n"
        "  MultiplyRepeated\n"
        "Name one of these, or check the spelling in the source.",
    ),
    "no C identifier": (
        lambda: Custom("add.cc:a-b", first, first),
        errors.ArgumentValueError,
        "Custom 'a-b': expected the name of a C function after the colon of func; got 'a-b'.\n"
        "Name a function that is exported with extern \"C\", e.g. './add.cc:Add'.",
    ),
    "no colon": (
        lambda: Custom("add.cc", first, first),
        errors.ArgumentTypeError,
        "Custom 'add.cc': expected func 'library.so:Symbol' or 'source.cc:Symbol' for func_type "
        "'aot'; got 'add.cc'.\n"
        "Name the file and the function, with a colon between them.",
    ),
    "unknown suffix": (
        lambda: Custom("add.f90:Add", first, first),
        errors.ArgumentValueError,
        "Custom 'Add': expected a library (.so) or a source (.c, .cc, .cpp, .cxx, .cu); got "
        "'add.f90'.\n"
        "Rename the file, or build it to a shared library first.",
    ),
    "function as aot": (
        lambda: Custom(SOME_FUNCTION, first, first, func_type="aot"),
        errors.ArgumentTypeError,
        "Custom 'sin': expected func 'library.so:Symbol' or 'source.cc:Symbol' for func_type "
        "'aot'; got <ufunc 'sin'>.\n"
        "Name the file and the function, with a colon between them.",
    ),
    "text as pyfunc": (
        lambda: Custom("add.cc:Add", first, first, func_type="pyfunc"),
        errors.ArgumentTypeError,
        "Custom 'Add': expected a function for func_type 'pyfunc'; got str.\n"
        "Pass a Python function over numpy arrays; a str such as './add.cc:Add' is "
        "func_type='aot'.",
    ),
    "object as func": (
        lambda: Custom(3, first, first),
        errors.ArgumentTypeError,
        "Custom 'int': expected a function for func_type 'pyfunc'; got int.\n"
        "Pass a Python function over numpy arrays; a str such as './add.cc:Add' is "
        "func_type='aot'.",
    ),
    "object as func_type": (
        lambda: Custom(SOME_FUNCTION, first, first, func_type=object()),
        errors.ArgumentTypeError,
        "Custom 'sin': expected a str for func_type; got object.\n"
        "Pass one of 'aicpu', 'akg', 'aot', 'ffi', 'hybrid', 'pyfunc', 'tbe', or leave it out.",
    ),
    "unknown func_type": (
        lambda: Custom(SOME_FUNCTION, first, first, func_type="fortran"),
        errors.ArgumentValueError,
        "Custom 'sin': expected func_type to be one of 'aicpu', 'akg', 'aot', 'ffi', "
        "'hybrid', 'pyfunc', 'tbe'; got 'fortran'.\n"
        "Pass one of these, or leave func_type out: a str func is aot, a function pyfunc.",
    ),
    "func_type of a later version": (
        lambda: Custom(SOME_FUNCTION, first, first, func_type="julia"),
        errors.BackendError,
        "Custom 'sin': func_type 'julia' is not in this version of msops.\n"
        "Write the kernel as one of 'aicpu', 'akg', 'aot', 'ffi', 'hybrid', 'pyfunc', 'tbe'.",
    ),
    "option of wrong type": (
        lambda: Custom(SOME_FUNCTION, first, first, stateful="no"),
        errors.ArgumentTypeError,
        "Custom 'sin': expected a bool or 'ordered' for stateful; got 'no'.\n"
        "See the docstring of Custom for what it does.",
    ),
    "list of an array and a number": (
        lambda: aot("AddAll")([X, 2.0]),
        errors.ArgumentTypeError,
        "Custom 'AddAll': expected an array for element 1 of input 0; got the number 2.0.\n"
        "A list is an input of several arrays, or one array of numbers: make an array of each "
        "number, or of all.",
    ),
    "list of numbers of two types": (
        lambda: aot("Multiply")(Tensor([1.0, 2.0]), [1, 2.0]),
        errors.ArgumentTypeError,
        "Custom 'Multiply': expected for input 1 numbers of one type, as MindSpore does; got "
        "[1, 2.0].\nWrite all of them as floats, or all as ints.",
    ),
    "list of numbers where attributes go by name": (
        lambda: aot("Multiply", attrs={"alpha": 0.5})(X, [1.0, 2.0]),
        errors.ArgumentTypeError,
        "Custom 'Multiply': expected arrays by position, and attributes by name; got [1.0, 2.0] by "
        "position.\nPass an attribute as alpha=[1.0, 2.0], a number that is an input as "
        "jnp.float32([1.0, 2.0]).",
    ),
    "size that XLA cannot count": (
        lambda: aot("Copy", [2**50, 2**13, 0])(X),
        errors.InferenceValueError,
        "Custom 'Copy': expected from out_shape at most 64 dimensions with less than 2**59 entries "
        "in all; got [1125899906842624, 8192].\n"
        "Fix the shape; a kernel with several outputs infers them only if op info lists them.",
    ),
    "name of an added attribute": (
        lambda: aot("Copy").add_prim_attr("", 1),
        errors.ArgumentValueError,
        "Custom 'Copy': expected an identifier as the name of an attribute; got ''.\n"
        "Use the name the kernel asks for, e.g. 'axis'.",
    ),
    "added attribute above 64 bits": (
        lambda: aot("Copy").add_prim_attr("n", [2**70]),
        errors.ArgumentValueError,
        "Custom 'Copy': expected attribute 'n' to fit 64 bits; got 1180591620717411303424.\n"
        "A kernel reads it as int64_t.",
    ),
    "arity of out_shape": (
        lambda: aot("Multiply", lambda x: x)(X, X),
        errors.ArgumentTypeError,
        "Custom 'Multiply': out_shape function (x) cannot take the call's 2 argument(s).\n"
        "Give out_shape one parameter per call argument, inputs, then attributes, or fix the call.",
    ),
    "arity of out_dtype": (
        lambda: aot("Multiply", first, lambda a, b, c: a)(X, X),
        errors.ArgumentTypeError,
        "Custom 'Multiply': out_dtype function (a, b, c) cannot take the call's 2 argument(s).\n"
        "Give out_dtype one parameter per call argument, inputs, then attributes, or fix the call.",
    ),
    "text as shape": (
        lambda: aot("Multiply", lambda x, y: "abc")(X, X),
        errors.InferenceValueError,
        "Custom 'Multiply': expected a shape from its out_shape function, a list or tuple of "
        "non-negative int, or a tuple of shapes for several outputs; got 'abc'.\n"
        "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, so "
        "-1 and None are not sizes.",
    ),
    "negative size": (
        lambda: aot("Multiply", [-1]),
        errors.InferenceValueError,
        "Custom 'Multiply': expected a shape from out_shape, a list or tuple of non-negative int, "
        "or a tuple of shapes for several outputs; got [-1].\n"
        "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, so "
        "-1 and None are not sizes.",
    ),
    "float size": (
        lambda: aot("Multiply", lambda x, y: [2.0])(X, X),
        errors.InferenceValueError,
        "Custom 'Multiply': expected a shape from its out_shape function, a list or tuple of "
        "non-negative int, or a tuple of shapes for several outputs; got [2.0].\n"
        "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, so "
        "-1 and None are not sizes.",
    ),
    "no dtype": (
        lambda: aot("Multiply", first, lambda x, y: None)(X, X),
        errors.InferenceTypeError,
        "Custom 'Multiply': expected a dtype from its out_dtype function, or a tuple of dtypes for "
        "several outputs; got None.\n"
        "Return for example msops.float32, or (msops.float32, msops.bool_) for two outputs.",
    ),
    "two shapes, one dtype": (
        lambda: aot("Multiply", lambda x, y: (x, y), first)(X, X),
        errors.InferenceValueError,
        "Custom 'Multiply': expected as many shapes as dtypes; got ((3,), (3,)) from out_shape and "
        "Float32 from out_dtype.\n"
        "Give both as one value for a single output, or both as tuples of equal length.",
    ),
    "kernel infers nonsense": (
        lambda: Custom(f"{FLOAT_OPS}:Nonsense", None, np.float32)(X),
        errors.InferenceValueError,
        "Custom 'Nonsense': expected a shape from the kernel's own shape inference, a list or "
        "tuple of non-negative int, or a tuple of shapes for several outputs; got [-3].\n"
        "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, so "
        "-1 and None are not sizes.",
    ),
    "kernel infers no dtype": (
        lambda: Custom(f"{FLOAT_OPS}:Nonsense", first)(X),
        errors.InferenceValueError,
        "Custom 'Nonsense': expected TypeId numbers of dtypes from NonsenseInferType; got [7].\n"
        "Return one of the numbers: 30 bool, 32 int8, 33 int16, 34 int32, 35 int64, 37 uint8, 38 "
        "uint16, 39 uint32, 40 uint64, 42 float16, 43 float32, 44 float64, 45 bfloat16, 51 "
        "complex64, 52 complex128, 46 float8_e4m3fn, 47 float8_e5m2.",
    ),
    "kernel cannot infer": (
        lambda: Custom(f"{FLOAT_OPS}:Fails")(X),
        errors.InferenceValueError,
        "Custom 'Fails': neither out nor out_shape is given, and float_ops.cc has no "
        "FailsInferShape.\n"
        "Pass out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), or out_shape=lambda x: x; or "
        'define extern "C" FailsInferShape in the library.',
    ),
    "called without arguments": (
        lambda: Custom(lambda x: x, lambda x: x, first)(),
        errors.ArgumentTypeError,
        "Custom '<lambda>': it is called without arguments, and its out_shape function takes (x).\n"
        "Pass an array for each input of the kernel.",
    ),
    "a C++ function called without arguments": (
        lambda: msops.cpp(f"{FLOAT_OPS}:Multiply", out=lambda x: x)(),
        errors.ArgumentTypeError,
        "Custom 'Multiply': it is called without arguments, and its out function takes (x).\n"
        "Pass an array for each input of the kernel.",
    ),
    "an option by JAX's name": (
        lambda: msops.cpp(f"{FLOAT_OPS}:Multiply", vmap_method="sequential"),
        errors.ArgumentTypeError,
        "Custom 'Multiply': it has no option 'vmap_method'.\n"
        "Write vmap= for JAX's vmap_method=: see help(msops.Custom).",
    ),
    "a misspelt option": (
        lambda: Custom(np.sin, first, first, in_place={0: 0}),
        errors.ArgumentTypeError,
        "Custom 'sin': it has no option 'in_place'.\nDid you mean inplace=?",
    ),
    "an attribute as an option": (
        lambda: msops.pyfunc(np.sin, out=first, alpha=0.5),
        errors.ArgumentTypeError,
        "Custom 'sin': it has no option 'alpha'.\n"
        "help(msops.Custom) lists the options. An attribute of the kernel is declared by "
        "attrs={'alpha': value}, and passed when the op is called.",
    ),
    "too many inputs": (
        lambda: guarded()(X, X, X),
        errors.ArgumentValueError,
        "Custom 'Multiply': expected 2 input(s) (x, y) as its op info lists; got 3.\n"
        "Pass one argument per input, in that order; attributes follow the inputs.",
    ),
    "too few inputs": (
        lambda: guarded()(X),
        errors.OpInfoValueError,
        "Custom 'Multiply' on CPU: expected 2 inputs (x, y), as its op info lists; got 1.\n"
        "Pass as many, or list each input in the op info with .input(index, name).",
    ),
    "dtype outside the op info": (
        lambda: guarded()(X.astype(jnp.float16), X),
        errors.OpInfoTypeError,
        "Custom 'Multiply' on CPU: input dtypes (float16, float32) match no row of its op info:\n"
        "  (float32, float32) -> float32\n"
        "Cast the inputs, or register the row with .dtype_format(DataType.F16_Default, ...).",
    ),
    "attribute missing": (
        lambda: scale_sum()(M),
        errors.OpInfoValueError,
        "Custom 'ScaleSum': expected a value for the required attribute 'scale' (float); got "
        "none.\n"
        "Pass it by name, scale=..., or give it a default in attrs=, or with "
        ".attr(..., default_value=...).",
    ),
    "attribute of wrong type": (
        lambda: scale_sum()(M, "two"),
        errors.OpInfoTypeError,
        "Custom 'ScaleSum': expected attribute 'scale' to be a float; got 'two' (str).\n"
        "Pass a float, or change the attribute's value_type in the op info.",
    ),
    "unknown attribute": (
        lambda: scale_sum()(M, 1.0, 2.0),
        errors.OpInfoValueError,
        "Custom 'ScaleSum': expected at most 1 attribute (scale) after the tensors; got 2.\n"
        "Pass no more, or register the attribute with .attr(name, 'required', value_type) of "
        "CustomRegOp.",
    ),
    "traced attribute": (
        lambda: jax.jit(lambda s: scale_sum()(M, s))(2.0),
        errors.OpInfoTypeError,
        "Custom 'ScaleSum': expected attribute 'scale' to be a value known when the op is traced; "
        "got the tracer JitTracer(~float32[]).\n"
        "Pass a Python value, or mark the argument it comes from as static (static_argnums of "
        "jax.jit), or make it a tensor input of the op.",
    ),
    "text as input": (
        lambda: aot("Multiply")("a", X),
        errors.ArgumentTypeError,
        "Custom 'Multiply': expected an array for input 0; got str 'a'.\n"
        "Pass a jax.Array, numpy array, msops.Tensor or number; what is no array is an attribute: "
        "declare it by attrs= or by op info, and pass it by its name.",
    ),
    "None in a list": (
        lambda: aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])([X, None]),
        errors.ArgumentTypeError,
        "Custom 'AddAll': expected an array for element 1 of input 0; got NoneType None.\n"
        "Pass a jax.Array, numpy array, msops.Tensor or number; what is no array is an attribute: "
        "declare it by attrs= or by op info, and pass it by its name.",
    ),
    "a list that holds itself": (
        lambda: aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])(endless(X)),
        errors.ArgumentValueError,
        ENDLESS,
    ),
    "a list that holds itself and Tensors": (
        lambda: aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])(endless(Tensor(X))),
        errors.ArgumentValueError,
        ENDLESS,
    ),
    "a list that holds itself as Tensor": (
        lambda: Tensor(endless(X)),
        errors.ArgumentValueError,
        ENDLESS.replace("Custom 'AddAll'", "Tensor"),
    ),
    "a list that holds itself as operand": (
        lambda: ops.add(endless(X), X),
        errors.ArgumentValueError,
        ENDLESS.replace("Custom 'AddAll'", "msops"),
    ),
    "64 bits with x64 off": (
        lambda: aot("Copy")(np.arange(3)),
        errors.InferenceTypeError,
        "Custom 'Copy': input 0 is int64, and 64-bit types are off in JAX.\n"
        "Cast to 32 bits (x.astype(np.int32)), set jax.config.update('jax_enable_x64', True), "
        "call inside jax.enable_x64(True), or pass msops.Tensors, which keep their width.",
    ),
    "64 bits out with x64 off": (
        lambda: aot("Copy", first, np.float64)(X),
        errors.InferenceTypeError,
        "Custom 'Copy': output 0 is float64, and 64-bit types are off in JAX.\n"
        "Declare np.float32 by out_dtype, set jax.config.update('jax_enable_x64', True), "
        "call inside jax.enable_x64(True), or pass msops.Tensors, which keep their width.",
    ),
    "loops over a symbolic extent": (
        lambda: jax.export.export(jax.jit(doubled()))(
            jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), np.float32)
        ),
        errors.InferenceValueError,
        "Custom 'double': expected numbers for the shape of input 0; got (n, 3).\n"
        "Loops are compiled for the shapes of a call: write them for one example and export "
        "jax.vmap of the op, whose axis may be symbolic, or export one program per shape.",
    ),
    "loops over complex numbers": (
        lambda: doubled()(jnp.ones(3, np.complex64)),
        errors.InferenceTypeError,
        "Custom 'double': expected for input 0 a dtype that loops compute in, one of bool, int8, "
        "int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64; "
        "got complex64.\nPass real and imaginary parts as two inputs.",
    ),
    "a coroutine as kernel": (
        lambda: Custom(suspended, func_type="akg"),
        errors.ArgumentTypeError,
        "Custom 'suspended': expected a kernel that is a function made by def; got an async def.\n"
        "Kernels are compiled from the source of a def: write one.",
    ),
    "what wraps itself as kernel": (
        lambda: Custom(WrapsItself(), func_type="akg"),
        errors.ArgumentTypeError,
        "Custom 'WrapsItself': expected a kernel that is a function made by def; got WrapsItself.\n"
        "Kernels are compiled from the source of a def: write one.",
    ),
    "kernel's own error code": (
        lambda: jax.block_until_ready(aot("Fails")(X)),
        errors.KernelError,
        "Custom 'Fails' on CPU: kernel returned 42, expected 0:\n"
        "  symbol Fails of library float_ops.cc ({hash})\n"
        "  inputs: float32[3]; outputs: float32[3]\n"
        "The value is the kernel's own error code; see its source.",
    ),
    "kernel throws": (
        lambda: jax.block_until_ready(aot("Throws")(X)),
        errors.KernelError,
        "Custom 'Throws' on CPU: kernel threw an exception, expected it to return 0:\n"
        "  std::runtime_error: the kernel threw this\n"
        "  symbol Throws of library float_ops.cc ({hash})\n"
        "  inputs: float32[3]; outputs: float32[3]\n"
        "Pass what the kernel asks for, or handle the case in its source.",
    ),
    "hybrid without its decorator": (
        lambda: Custom(multiply, func_type="hybrid"),
        errors.ArgumentTypeError,
        "Custom 'multiply': 'func' must be a function decorated by kernel.\n"
        "Decorate it with @ops.kernel, or pass func_type='akg' and out_shape, out_dtype.",
    ),
    "text as akg": (
        lambda: Custom("add.cc:Add", func_type="akg"),
        errors.ArgumentTypeError,
        "Custom 'Add': expected a kernel that is a function made by def; got str.\n"
        "Kernels are compiled from the source of a def: write one.",
    ),
    "option of another func_type": (
        lambda: Custom(multiply, func_type="akg", writable=True),
        errors.ArgumentValueError,
        "Custom 'multiply': option writable is for func_type 'aicpu' or 'pyfunc'; "
        "this op is 'akg'.\n"
        "Leave writable out.",
    ),
    "unknown compile_attrs": (
        lambda: Custom(multiply, func_type="akg", compile_attrs={"speed": 1}),
        errors.ArgumentValueError,
        "Custom 'multiply': expected compile_attrs with keys among 'lower' for func_type 'akg'; "
        "got 'speed'.\n"
        "Leave the others out.",
    ),
    "loops of a dtype without a row": (
        lambda: loops(multiply, reg_info=float_info())(X.astype(jnp.int32), X.astype(jnp.int32)),
        errors.OpInfoTypeError,
        "Custom 'multiply' on CPU: input dtypes (int32, int32) match no row of its op info:\n"
        "  (float32, float32) -> float32\n"
        "Cast the inputs, or register the row with "
        ".dtype_format(DataType.I32_Default, ...).",
    ),
    "64 bits into loops with x64 off": (
        lambda: loops(multiply)(np.ones(3), np.ones(3)),
        errors.InferenceTypeError,
        "Custom 'multiply': input 0 is float64, and 64-bit types are off in JAX.\n"
        "Cast to 32 bits (x.astype(np.float32)), set jax.config.update('jax_enable_x64', True), "
        "call inside jax.enable_x64(True), or pass msops.Tensors, which keep their width.",
    ),
    "an int that is too large": (
        lambda: Custom(np.sin, first, first)(2**100),
        errors.ArgumentValueError,
        f"Custom 'sin': expected input 0 to fit 32 bits; got {2**100}.\n"
        "Pass a float, or an array of a type that holds it.",
    ),
    "an int that is too large to print": (
        lambda: jax.jit(lambda x: Custom(np.add, first, first)(x, -(10**9999)))(X),
        errors.ArgumentValueError,
        "Custom 'add': expected input 1 to fit 32 bits; got an int of 33216 bits.\n"
        "Pass a float, or an array of a type that holds it.",
    ),
    "masked array": (
        lambda: Custom(np.sin, first, first)(np.ma.masked_less(np.float32([1, 2]), 2)),
        errors.ArgumentTypeError,
        "Custom 'sin': expected an array for input 0; got a masked array, whose mask would be "
        "lost.\nPass x.filled(value), or the mask as an input of its own.",
    ),
    "masked array as Tensor": (
        lambda: Tensor(np.ma.masked_less(np.float32([1, 2]), 2)),
        errors.ArgumentTypeError,
        "Tensor: input_data is a masked array, whose mask would be lost.\n"
        "Pass x.filled(value), and the mask as a Tensor of its own.",
    ),
    "masked array as result": (
        lambda: Custom(lambda x: np.ma.masked_less(x, 2), first, first)(X),
        errors.InferenceTypeError,
        "Custom '<lambda>' on CPU: expected an array for output 0; its function returned a masked "
        "array, whose mask would be lost.\n"
        "Return result.filled(value), or the mask as an output of its own.",
    ),
    "op info nested too deep": (
        lambda: Custom(np.sin, first, first, reg_info="[" * 100000 + "]" * 100000),
        errors.OpInfoValueError,
        "Custom 'sin': expected op info as a dict, its JSON text, or a list of them; got lists or "
        "dicts that hold themselves, or are nested too deep.\n"
        "Pass what CustomRegOp(...).get_op_info() returns.",
    ),
    "op info that holds itself": (
        lambda: Custom(np.sin, first, first, reg_info=endless({})),
        errors.OpInfoValueError,
        "Custom 'sin': expected op info as a dict, its JSON text, or a list of them; got lists or "
        "dicts that hold themselves, or are nested too deep.\n"
        "Pass what CustomRegOp(...).get_op_info() returns.",
    ),
    "platform of register_ffi_targets": (
        lambda: __import__("msops").register_ffi_targets("abacus"),
        errors.ArgumentValueError,
        "msops.register_ffi_targets: expected platform 'cpu', 'cuda' or 'rocm'; got 'abacus'.\n"
        "Pass the platform the program was lowered for.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_error_says_who_expected_got_and_what_to_do(name: str) -> None:
    use, family, text = CASES[name]
    with pytest.raises(family) as caught:
        use()
    hashed = aot("Multiply")
    hashed(X, X)
    content = hashed._resolve().operator.definition.kernel.library.hash[:12]
    assert str(caught.value) == text.replace("{cwd}", str(Path.cwd())).replace("{hash}", content)
    assert isinstance(caught.value, errors.MsopsError)


CALLS = {
    "too few tensors": (
        multiply,
        lambda: loops(multiply)(X),
        errors.BuildError,
        "the kernel has the parameters (x, y); it is called with 1 tensor",
        "def multiply(x, y):",
        "Pass an array for y, or its value by name, y=...",
    ),
    "a list for one tensor": (
        multiply,
        lambda: loops(multiply)([X, X], X),
        errors.BuildError,
        "'x' is a list of tensors",
        "def multiply(x, y):",
        "A kernel of loops takes tensors one by one: give it a parameter for each.",
    ),
    "an attribute of another name": (
        horner,
        lambda: loops(horner, reg_info=scale_sum_info())(X, 1.5),
        errors.BuildError,
        "the kernel has the parameters (x, at); it is called with 1 tensor and the attributes "
        "scale",
        "def horner(x, at):",
        "Pass an array for at, or its value by name, at=...",
    ),
    "two dtypes": (
        multiply,
        lambda: loops(multiply)(X, X.astype(jnp.float16)),
        errors.BuildError,
        "mismatch type: the operands of '*' are float32 and float16",
        "z[i] = x[i] * y[i]",
        "Convert one: float32(y[i]).",
    ),
    "shapes that do not fit": (
        matmul,
        lambda: loops(matmul)(M, M),
        errors.ArgumentValueError,
        "reads b[2, j] of b: float32[2, 3] at i = 0, j = 0, k = 2",
        "c[i, j] = c[i, j] + a[i, k] * b[k, j]",
        "Correct the index, or guard the access by an if.",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_the_loops_shows_the_line(name: str) -> None:
    kernel, use, family, problem, code, remedy = CALLS[name]
    with pytest.raises(family) as caught:
        use()
    who, place, line, caret, *advice = str(caught.value).split("\n")
    lines, start = inspect.getsourcelines(kernel)
    number = start + [text.strip() for text in lines].index(code)
    assert who == f"Custom '{kernel.__name__}': {problem}:"
    assert place == f"  {inspect.getsourcefile(kernel)}:{number}"
    assert line == f"    {code}"
    assert set(caret.strip()) == {"^"}
    assert "\n".join(advice) == remedy


def test_process_works_on_after_all_of_them() -> None:
    for use, family, _ in CASES.values():
        with pytest.raises(family):
            use()
    np.testing.assert_array_equal(aot("Multiply")(X, X), X * X)


def test_source_that_does_not_compile_shows_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "broken.cc"
    source.write_text('extern "C" int F() { return missing; }\n')
    op = Custom(f"{source}:F", first, first)
    with pytest.raises(errors.BuildError) as caught:
        op(X)
    text = str(caught.value)
    assert text.startswith("Custom 'F': ")
    assert "missing" in text
    assert "not declared" in text
    assert "g++" in text
    source.write_text(
        'extern "C" int F(int, void **p, int *, long **, const char **, void *, void *) '
        "{ static_cast<float *>(p[1])[0] = 1; return 0; }"
    )
    assert op(X[:1])[0] == 1


def test_missing_extern_c_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "mangled.cc"
    source.write_text("int Mangled(int, void **) { return 0; }\n")
    with pytest.raises(errors.BuildError, match='extern "C"'):
        Custom(f"{source}:Mangled", first, first)(X)


def test_library_of_another_architecture_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "other.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)],
        input=b'extern "C" int F() { return 0; }',
        check=True,
    )
    data = bytearray(library.read_bytes())
    data[18:20] = (0xB7 if data[18] == 0x3E else 0x3E).to_bytes(2, "little")
    library.write_bytes(data)
    with pytest.raises(errors.BuildError, match=r"other\.so"):
        Custom(f"{library}:F", first, first)(X)


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF" + bytes(60)])
def test_file_that_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    library = tmp_path / "bad.so"
    library.write_bytes(content)
    with pytest.raises(errors.BuildError, match=r"bad\.so"):
        Custom(f"{library}:F", first, first)(X)


def test_library_that_needs_a_missing_symbol_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "unresolved.cc"
    source.write_text(
        "int Elsewhere();\n"
        'extern "C" int F(int, void **, int *, long **, const char **, void *, void *) '
        "{ return Elsewhere(); }\n"
    )
    with pytest.raises(errors.BuildError, match="Elsewhere"):
        Custom(f"{source}:F", first, first)(X)


def test_infer_function_that_raises_names_the_op() -> None:
    with pytest.raises(IndexError) as caught:
        aot("Multiply", lambda x, y: [x[9]])(X, X)
    note, *_ = caught.value.__notes__
    assert note == "Custom 'Multiply': raised by its out_shape function, called with [[3], [3]]"


def test_a_call_without_inputs_that_an_infer_function_needs_is_an_error() -> None:
    for op in (aot("Multiply", lambda *shapes: shapes[0]), Custom(np.sin, lambda *s: s[0], first)):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            op()
        assert str(caught.value) == (
            f"Custom '{op.__name__}': it is called without arguments, and then its out_shape "
            "function raises IndexError: tuple index out of range.\n"
            "Pass an array for each input of the kernel."
        )


SURROGATE = "\udc80"


def with_text(name: str = "a", kind: str = "str") -> Custom:
    info = CustomRegOp("Text").input(0, "x").output(0, "y").attr(name, "required", kind)
    info = info.dtype_format(DataType.F32_Default, DataType.F32_Default).target("CPU")
    return aot("Multiply", lambda x, text: x, lambda x, text: x, reg_info=info.get_op_info())


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda: with_text()(X, SURROGATE), "attribute 'a'"),
        (lambda: jax.jit(lambda x: with_text()(x, SURROGATE))(X), "attribute 'a'"),
        (lambda: with_text(kind="listStr")(X, ["b", SURROGATE]), "attribute 'a'"),
        (lambda: with_text(f"a{SURROGATE}")(X, "b"), r"attribute 'a\udc80'"),
    ],
    ids=["eager", "jit", "list", "name"],
)
def test_a_lone_surrogate_in_an_attribute_is_an_error(use, what) -> None:
    with pytest.raises(errors.ArgumentValueError) as caught:
        use()
    head = f"Custom 'Multiply': expected text of whole characters for {what}; got "
    assert str(caught.value).startswith(head)


def test_names_with_a_lone_surrogate_are_shown_escaped() -> None:
    def double(x):
        return 2 * x

    double.__name__ = double.__qualname__ = f"double{SURROGATE}"
    op = Custom(double, lambda x: x, lambda x: x)
    np.testing.assert_array_equal(jax.jit(op)(jnp.asarray(X)), 2 * X)
    assert op.__name__ == r"double\udc80"
    with pytest.raises(errors.MsopsError, match="float"):
        Custom(double, X.shape, f"float32{SURROGATE}")


@pytest.mark.parametrize("name", ["bprop", "jvp", "fwd", "bwd"])
def test_rule_of_differentiation_that_raises_names_the_op(name: str) -> None:
    def divided(*args: object) -> float:
        return 1 / 0

    def square(x: np.ndarray) -> np.ndarray:
        return x * x

    given = {name: divided} if name in ("bprop", "jvp") else {}
    op = Custom(square, func_type="pyfunc", out=lambda x: x, **given)
    if name == "fwd":
        op.def_vjp(divided, lambda residuals, dout: (dout,))
    elif name == "bwd":
        op.def_vjp(lambda x: (op(x), x), lambda residuals, dout: divided())
    with pytest.raises(ZeroDivisionError) as caught:
        jax.grad(lambda x: op(x).sum())(X)
    assert caught.value.__notes__[0] == f"Custom 'square': raised by its {name} function"


def test_mixed_sizes_and_shapes_are_no_shape() -> None:
    with pytest.raises(errors.InferenceValueError, match="expected a shape from its out_shape"):
        aot("Multiply", lambda x, y: [[1], 2])(X, X)


def test_pipes_and_devices_are_no_libraries(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cc")
    (tmp_path / "zero.so").symlink_to("/dev/zero")
    for name in ("pipe.cc", "zero.so"):
        with pytest.raises(errors.BuildError, match="is no regular file"):
            Custom(f"{tmp_path / name}:F", first, first)


def test_rank_without_end_is_refused() -> None:
    with pytest.raises(errors.InferenceValueError, match="at most 64 dimensions"):
        aot("Copy", lambda x: [1] * 100_000)(X)


@pytest.mark.parametrize(
    "value",
    [np.array(["a"]), np.array([object()]), np.array(["2020"], "M8[Y]"), {1}, object(), b"x"],
    ids=["text", "objects", "dates", "set", "object", "bytes"],
)
def test_what_is_no_array_is_refused(value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="expected an array for input 1"):
        aot("Multiply")(X, value)


@pytest.mark.parametrize(
    ("value", "dtype", "cast"),
    [
        (jax.ShapeDtypeStruct((3,), ml_dtypes.int1), "int1", "integers by x.astype(jnp.int8)"),
        (jax.ShapeDtypeStruct((3,), ml_dtypes.uint1), "uint1", "integers by x.astype(jnp.int8)"),
        (
            jax.ShapeDtypeStruct((3,), ml_dtypes.float6_e2m3fn),
            "float6_e2m3fn",
            "floats by x.astype(jnp.bfloat16)",
        ),
        (
            jax.ShapeDtypeStruct((3,), ml_dtypes.float6_e3m2fn),
            "float6_e3m2fn",
            "floats by x.astype(jnp.bfloat16)",
        ),
        (jax.random.key(0), "key<fry>", "random keys by jax.random.key_data(x)"),
    ],
    ids=["int1", "uint1", "float6", "the other float6", "key"],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_dtypes_outside_the_table_are_refused(
    value: Any, dtype: str, cast: str, compiled: bool
) -> None:
    """XLA on the CPU has no arrays of the narrowest: see `test_narrow_dtypes.py`."""
    for op in (aot("Copy"), doubled(), Custom(np.negative, first, first)):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            jax.eval_shape(jax.jit(op) if compiled else op, value)
        text = str(caught.value)
        assert text.startswith("Custom '")
        assert "expected for input 0 one of bool, int8" in text
        assert f"got {dtype}.\n" in text
        assert cast in text


_GIVEN_OPTIONS = {
    "stateful": True,
    "reentrant": False,
    "inplace": {0: 0},
    "writable": True,
    "host": True,
    "cxx11_abi": False,
    "dynamic_outputs": True,
}


_FUNCTIONS = {
    "aicpu": f"{KERNELS}/float_ops.cc",
    "akg": multiply,
    "aot": f"{KERNELS}/float_ops.cc:Multiply",
    "ffi": f"{KERNELS}/float_ops.cc:Multiply",
    "hybrid": ops.kernel(multiply),
    "pyfunc": np.multiply,
    "tbe": multiply,
}


@pytest.mark.parametrize("func_type", _FUNCTIONS)
@pytest.mark.parametrize("option", _GIVEN_OPTIONS)
def test_options_are_for_the_func_types_that_the_docstring_names(option, func_type):
    (named,) = re.findall(rf"^ +{option}: ([a-z0-9, ]+): ", Custom.__doc__, re.MULTILINE)
    given = {option: _GIVEN_OPTIONS[option]}
    info = CustomRegOp().target("Ascend").get_op_info() if func_type == "aicpu" else None
    func = _FUNCTIONS[func_type]

    def make() -> Custom:
        return Custom(func, first, first, func_type=func_type, reg_info=info, **given)

    if func_type in named.split(", "):
        assert make().func_type == func_type
        return
    owners = " or ".join(f"'{owner}'" for owner in named.split(", "))
    with pytest.raises(errors.ArgumentValueError) as caught:
        make()
    message = (
        f"option {option} is for func_type {owners}; this op is '{func_type}'.\nLeave {option} out."
    )
    assert str(caught.value).partition(": ")[2] == message


def test_loops_refuse_reentrant():
    for func_type, func in (("akg", multiply), ("hybrid", ops.kernel(multiply))):
        with pytest.raises(errors.ArgumentValueError, match="option reentrant is for func_type"):
            Custom(func, func_type=func_type, reentrant=False)


def aicpu_from(source: str) -> Custom:
    info = CustomRegOp("Times").input(0, "x").output(0, "y").target("Ascend").get_op_info()
    return Custom(source, first, first, func_type="aicpu", reg_info=info)


def aicpu_in(library: str) -> Any:
    row = CustomRegOp("Times").input(0, "x").output(0, "y").target("Ascend")
    row.attr("cust_aicpu", "required", "str", default_value=library)

    def times(x):
        """Stands for the kernel."""

    return Custom(times, first, first, func_type="aicpu", reg_info=row.get_op_info())(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda: Custom("~nosuchuser/a.cc:F", first, first),
        lambda: aicpu_from("~nosuchuser/a.cc"),
        lambda: aicpu_in("~nosuchuser/liba.so"),
        lambda: Custom("~nosuchuser/a.py:f", first, first, func_type="tbe"),
    ],
    ids=["aot", "aicpu", "cust_aicpu", "tbe"],
)
def test_a_home_folder_of_nobody(use):
    with pytest.raises(errors.ArgumentValueError, match=r"'~nosuchuser/.*home folder is not known"):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda: aicpu_from("a\0b/c.cc"),
        lambda: aicpu_in("a\0b/c"),
        lambda: aicpu_in("a\0b"),
        lambda: Custom("a\0b/c.py:f", first, first, func_type="tbe"),
    ],
    ids=["aicpu", "cust_aicpu", "cust_aicpu without folder", "tbe"],
)
def test_paths_with_a_null_character(use):
    with pytest.raises(errors.ArgumentValueError, match=r"got 'a\\x00b.*null character"):
        use()


@pytest.mark.parametrize("suffix", [".c", ".cc", ".cpp", ".cxx", ".cu"])
@pytest.mark.parametrize("folder", ["", "/p/"])
def test_cust_aicpu_names_no_source(folder, suffix):
    with pytest.raises(errors.ArgumentValueError) as caught:
        aicpu_in(f"{folder}x{suffix}")
    assert str(caught.value) == (
        "Custom 'times' on CPU: expected the name or the path of a library as cust_aicpu; got the "
        f"source '{folder}x{suffix}'.\n"
        "Give C++ sources as func, Custom('kernel.cc', ...), or name the library built from them."
    )


@pytest.mark.parametrize(
    "variable",
    [
        "MSOPS_CACHE_DIR",
        "XDG_CACHE_HOME",
        "MSOPS_LIBRARY_PATH",
        "MSOPS_AICPU_PATH",
        "MSOPS_EIGEN",
        "MS_CUSTOM_AOT_WHITE_LIST",
    ],
)
def test_variables_that_name_the_home_folder_of_nobody(monkeypatch, variable):
    multiply_in_c = _FUNCTIONS["aot"]
    source = str(KERNELS.parent / "aicpu_kernels" / "random.cc")
    users = {
        "MSOPS_CACHE_DIR": lambda: Custom(multiply_in_c, first, first)(X, X),
        "XDG_CACHE_HOME": lambda: Custom(multiply_in_c, first, first)(X, X),
        "MSOPS_LIBRARY_PATH": lambda: msops.register_ffi_targets("cpu"),
        "MSOPS_AICPU_PATH": lambda: aicpu_in("liba.so"),
        "MSOPS_EIGEN": lambda: aicpu_from(source)(X),
        "MS_CUSTOM_AOT_WHITE_LIST": lambda: Custom(multiply_in_c, first, first),
    }
    monkeypatch.delenv("MSOPS_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, "~nosuchuser/x")
    with pytest.raises(errors.ArgumentValueError, match=f"^{variable}: expected a folder; got '~n"):
        users[variable]()


def test_attributes_that_hold_themselves_are_refused():
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (cyclic, deep):
        with pytest.raises(errors.ArgumentValueError, match="attribute 'axes' to be a finite list"):
            scale_sum().add_prim_attr("axes", value)
    shared = [1, 2]
    scale_sum().add_prim_attr("axes", [shared, shared])


@pytest.mark.parametrize("func_type", ["akg", "hybrid"])
@pytest.mark.parametrize("attrs", [{"lower": "xla"}, "no json", "[]"])
def test_compile_attrs_that_the_decorator_did_not_write(func_type, attrs):
    kernel = ops.kernel(multiply)
    kernel.compile_attrs = attrs
    with pytest.raises(errors.ArgumentTypeError, match="compile_attrs of the kernel to be JSON"):
        Custom(kernel, func_type=func_type)


def test_an_attribute_of_that_name_is_the_functions_own_business(monkeypatch):
    monkeypatch.setattr(multiply, "compile_attrs", {"lower": 7}, raising=False)
    np.testing.assert_array_equal(Custom(multiply, func_type="akg")(X, X), X * X)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "bool", "complex64"])
def test_advice_on_a_dtype_is_code_that_runs(dtype):
    wrong = lambda x: np.zeros(3, np.uint8)  # noqa: E731
    with pytest.raises(errors.InferenceTypeError) as caught:
        Custom(wrong, (3,), jnp.dtype(dtype))(X)
    (advice,) = re.findall(r"Return result\.astype\((\S+)\),", str(caught.value))
    assert eval(advice, {"np": np, "jnp": jnp}) == jnp.dtype(dtype)
