"""Programs exported by `jax.export`: of every batch size, and run in another process."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import KERNELS
from custom_ops import CASES, Case, aicpu, aot, first, loops, multiply, multiply_bprop
from extension_modules import extension
from quick_cases import one_in
from support_table import HANDLER

import msops
from msops import ops
from msops.errors import BackendError, InferenceValueError, MsopsError
from msops.ops import CustomRegOp, DataType

PORTABLE = [case for case in CASES if not case.name.startswith("pyfunc")]
# One op of each func_type, and of each lowering of loops.
QUICK = ("aot", "aicpu", "akg_raised", "akg_native", "tbe")


def export(
    function: Callable[..., Any], *shapes: tuple[Any, ...], **options: Any
) -> jax.export.Exported:
    """Exports a function of float32 arrays, whose shapes may have symbolic sizes."""
    structs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    checks = msops.export_checks()
    return jax.export.export(jax.jit(function), disabled_checks=checks, **options)(*structs)


# ---- symbolic sizes


def decay(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else x[i] - 0.5 * y[i - 1]
    return y


@pytest.mark.parametrize(
    "case",
    one_in(
        2,
        [
            pytest.param(case, marks=() if case.name in QUICK else pytest.mark.slow)
            for case in PORTABLE
        ],
    ),
    ids=lambda case: case.name,
)
def test_one_export_serves_batches_of_every_size(case: Case) -> None:
    op = case.make()

    def example(*inputs: Any) -> Any:
        def total(*inputs: Any) -> Any:
            return sum(part.sum() for part in jax.tree.leaves(op(*inputs)))

        return op(*inputs), jax.grad(total, range(len(inputs)))(*inputs)

    (symbol,) = jax.export.symbolic_shape("b")
    exported = export(jax.vmap(example), *((symbol, *shape) for shape in case.shapes))
    for size in (1, 3):
        examples = [case.inputs(seed) for seed in range(size)]
        batch = [jnp.stack(parts) for parts in zip(*examples, strict=True)]
        results, gradients = exported.call(*batch)
        expected = [jax.tree.leaves(case.numpy(*map(np.asarray, inputs))) for inputs in examples]
        for result, *parts in zip(jax.tree.leaves(results), *expected, strict=True):
            np.testing.assert_allclose(result, np.stack(parts), rtol=1e-5, atol=1e-5)
        # Those of one example are checked against finite differences elsewhere.
        expected = [example(*inputs)[1] for inputs in examples]
        for gradient, *parts in zip(gradients, *expected, strict=True):
            np.testing.assert_allclose(gradient, np.stack(parts), rtol=1e-5, atol=1e-5)


def test_loops_that_would_be_native_code_are_exported_as_operations() -> None:
    op, x = loops(multiply), jnp.arange(4096.0)

    def program(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return op(x, x), jax.grad(lambda x: op(x, x).sum())(x)

    assert "msops_aot" in jax.jit(program).lower(x).as_text()
    exported = jax.export.export(jax.jit(program))(x)
    assert "custom_call" not in exported.mlir_module()
    for got, expected in zip(exported.call(x), (x * x, 2 * x), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "make",
    [lambda: aot("Multiply"), lambda: aot("Multiply", sharding="i, i -> i"), lambda: aicpu("Mul")],
    ids=["aot", "aot with a sharding rule", "aicpu"],
)
def test_kernels_get_the_sizes_of_the_call(make: Callable[[], Any]) -> None:
    exported = export(make(), *[jax.export.symbolic_shape("n")] * 2)
    for size in (1, 5, 3):
        x = jnp.arange(size, dtype=jnp.float32)
        np.testing.assert_array_equal(exported.call(x, x + 1), x * (x + 1))


def test_native_loops_take_a_symbolic_axis_among_others() -> None:
    op = jax.vmap(jax.vmap(loops(decay, "native")))
    known = np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32)
    expected = known.copy()
    for i in range(1, 4):
        expected[..., i] -= 0.5 * expected[..., i - 1]
    for shape in ("b, 2, 4", "3, b, 4", "b, c, 4"):
        exported = export(op, jax.export.symbolic_shape(shape))
        np.testing.assert_allclose(exported.call(known), expected, rtol=1e-5)


def test_init_gets_the_sizes_of_the_call() -> None:
    (case,) = (case for case in CASES if case.name == "aot_attribute_workspace")
    exported = export(case.make(), jax.export.symbolic_shape("rows, columns"))
    for shape in ((1, 4), (700, 90), (2, 3)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(exported.call(x), case.numpy(x), rtol=1e-4, atol=1e-4)


EVEN = """
#include "custom_aot_extra.h"
extern "C" int EvenInit(int *, int64_t **shapes, const char **, AotExtra *) {
  return shapes[0][0] % 2;
}
extern "C" int Even(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<float *>(params[1])[i] = -static_cast<float *>(params[0])[i];
  }
  return 0;
}
"""


def test_init_may_refuse_a_size(tmp_path: Path) -> None:
    (tmp_path / "even.cc").write_text(EVEN)
    op = msops.Custom(str(tmp_path / "even.cc:Even"), first, first)
    exported = export(op, jax.export.symbolic_shape("n"))
    odd = jax.jit(exported.call)
    for _ in range(2):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="Init returned 1"):
            jax.block_until_ready(odd(jnp.ones(3)))
    np.testing.assert_array_equal(exported.call(jnp.ones(4)), -np.ones(4))


def test_a_kernel_writes_into_its_input_whatever_the_size() -> None:
    op = aot("AddInto", inplace={0: 0})
    exported = export(op, jax.export.symbolic_shape("n, 2"), (2,))
    for size in (1, 4):
        x = jnp.ones((size, 2))
        np.testing.assert_array_equal(exported.call(x, jnp.array([1.0, 2.0])), [[2, 3]] * size)


def test_results_may_have_computed_sizes() -> None:
    op = aot("Concat", lambda x, y: [x[0] + y[0]], first)
    n, m = jax.export.symbolic_shape("n, m")
    exported = export(op, (n,), (m,))
    x, y = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    np.testing.assert_array_equal(exported.call(x, y), np.concatenate([x, y]))


def test_a_frame_that_is_not_the_described_one_is_refused() -> None:
    """A program is text: one that describes other arrays must not reach the kernel."""
    op = aot("Multiply")
    op(jnp.ones(3), jnp.ones(3))
    library = op._resolve().operator.definition.kernel.library

    def call(x: jax.Array, dims: list[int], dtypes: str = "float32,float32,float32") -> jax.Array:
        return jax.ffi.ffi_call("msops_aot", jax.ShapeDtypeStruct(x.shape, x.dtype))(
            x,
            x,
            op="Multiply",
            library=library.hash,
            library_name=library.name,
            symbol="Multiply",
            operands=np.int64(2),
            ranks=np.array([2, 2, 2]),
            dims=np.array(dims),
            dtypes=dtypes,
            attributes={},
            reentrant=True,
            workspaces=np.array([], np.int64),
        )

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(call(x, [-1, 3] * 3), x * x)
    for wrong, dims, dtypes, text in (
        (x, [-1, 4] * 3, "float32,float32,float32", r"F32\(2, 3\), expected F32\(any, 4\)"),
        (x, [-1, 3] * 3, "int32,float32,float32", r"F32\(2, 3\), expected S32\(any, 3\)"),
        (x[0], [-1, 3] * 3, "float32,float32,float32", r"F32\(3\), expected F32\(any, 3\)"),
        (x, [-2, 3] * 3, "float32,float32,float32", r"F32\(2, 3\), expected F32\(-2, 3\)"),
    ):
        with pytest.raises(jax.errors.JaxRuntimeError, match=text):
            jax.block_until_ready(call(wrong, dims, dtypes))


REFUSED: dict[str, tuple[Callable[[], Any], type[MsopsError], str]] = {
    "inference in C++": (
        lambda: export(aot("Concat", None, None), *[jax.export.symbolic_shape("n")] * 2),
        InferenceValueError,
        "Custom 'Concat': expected numbers for the shape of input 0, as ConcatInferShape is asked; "
        "got (n).\n"
        "Pass out_shape as a function of the inputs' shapes, e.g. lambda x: x, which gets "
        "the symbols too, or export one program per shape.",
    ),
    "a Python function": (
        lambda: export(msops.Custom(lambda x: x, first, first), (3,)),
        BackendError,
        "Custom '<lambda>' on CPU: a program that calls the Python function <lambda> is being "
        "exported, which is a lambda, so another process cannot import it.\nDefine it by def at "
        "the top of a module that the other process can import, or write the kernel as func_type "
        "'aot', 'akg', 'hybrid' or 'tbe'.",
    ),
    "a round trip to the host": (
        lambda: export(aicpu("Mul"), (3,), (3,), platforms=["cuda"]),
        BackendError,
        "Custom 'multiply.cc' on GPU: a program that calls its CPU kernel through Python is being "
        "exported",
    ),
    "a round trip to the host, one platform of two": (
        lambda: export(aicpu("Mul"), (3,), (3,), platforms=["cpu", "cuda"]),
        BackendError,
        "Custom 'multiply.cc' on GPU: a program that calls its CPU kernel through Python is being "
        "exported",
    ),
    "a copy to the host, one platform of two": (
        lambda: export(aot("Multiply", host=True), (3,), (3,), platforms=["cuda", "cpu"]),
        BackendError,
        "Custom 'Multiply' on GPU: a program that calls its CPU kernel through Python is being "
        "exported",
    ),
    "a Python function for two platforms": (
        lambda: export(msops.Custom(textwrap.dedent, first, first), (), platforms=["cpu", "tpu"]),
        BackendError,
        "Custom 'dedent' on TPU: a program that calls a Python function is being exported",
    ),
    "a kernel of one platform for two": (
        lambda: export(aot("Multiply"), (3,), (3,), platforms=["cpu", "cuda"]),
        BackendError,
        "Custom 'Multiply' on GPU: float_ops.cc holds no GPU code.",
    ),
    "a handler of one platform for two": (
        lambda: export(
            msops.Custom(HANDLER, first, first, "ffi"), (3,), (3,), platforms=["cpu", "cuda"]
        ),
        BackendError,
        "Custom 'MultiplyHandler' on GPU: MultiplyHandler.cc holds no GPU code.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_is_refused(name: str) -> None:
    use, family, text = REFUSED[name]
    with pytest.raises(family) as caught:
        use()
    assert text in str(caught.value)


BOTH = [
    CustomRegOp("Multiply")
    .input(0, "x")
    .input(1, "y")
    .output(0, "z")
    .dtype_format(*[DataType.F32_Default] * 3)
    .target(target)
    .get_op_info()
    for target in ("CPU", "GPU")
]


@pytest.mark.parametrize(
    ("make", "platforms"),
    [
        (lambda: aot("Multiply", bprop=multiply_bprop, reg_info=BOTH), ("cpu", "cuda", "rocm")),
        (lambda: loops(multiply, "xla"), ("cuda", "cpu", "tpu")),
        (lambda: loops(multiply, "native"), ("cpu", "tpu")),
        (lambda: loops(ops.kernel(multiply), "xla"), ("cpu", "cuda")),
        (lambda: next(case for case in CASES if case.name == "tbe").make(), ("cuda", "cpu")),
        (lambda: msops.Custom("aclnnMul", first, first, "aot"), ("cpu", "cuda", "tpu")),
    ],
    ids=["aot", "loops_as_operations", "loops_in_c", "hybrid", "tbe", "aclnn"],
)
def test_one_export_serves_several_platforms(
    make: Callable[[], Callable[..., Any]], platforms: tuple[str, ...]
) -> None:
    op = make()
    inputs = [jnp.arange(6, dtype=jnp.float32) + i for i in range(2)]

    def example(x: Any, y: Any) -> Any:
        return op(x, y), jax.vmap(op)(x[None], y[None]), jax.grad(lambda x: op(x, y).sum())(x)

    exported = export(example, (6,), (6,), platforms=platforms)
    assert exported.platforms == platforms
    loaded = jax.export.deserialize(exported.serialize())
    jax.tree.map(np.testing.assert_array_equal, loaded.call(*inputs), jax.jit(example)(*inputs))


def test_a_loaded_program_calls_its_stateful_ops(tmp_path: Path) -> None:
    source = tmp_path / "counter.cc"
    source.write_text("""
        #include <cstdint>
        extern "C" int Count(int, void **p, int *, int64_t **, const char **, void *, void *) {
          static float calls = 0;
          *static_cast<float *>(p[1]) = ++calls;
          return 0;
        }""")
    op = msops.Custom(f"{source}:Count", first, first, stateful=True)
    loaded = jax.export.deserialize(export(lambda x: (op(x), op(x))[0], ()).serialize())
    assert loaded.call(np.float32(0)) in (1, 2)
    # A result that nobody uses is computed, too.
    jax.block_until_ready(jax.jit(lambda x: (loaded.call(x), x)[1])(np.float32(0)))
    assert loaded.call(np.float32(0)) in (5, 6)
    with pytest.raises(NotImplementedError, match="A loaded program has a stateful op"):
        jax.grad(jax.checkpoint(lambda x: x * loaded.call(x)))(np.float32(0))


def test_a_program_for_several_platforms_that_calls_python_is_refused() -> None:
    traced = jax.jit(aicpu("Mul")).trace(*[jnp.ones(3)] * 2)
    with pytest.raises(BackendError, match="JAX cannot lower for several platforms together"):
        traced.lower(lowering_platforms=("cpu", "cuda"))


def test_a_runner_is_not_exported() -> None:
    axpy = extension("runners").axpy
    text = r"Runner 'Axpy' of .*: a program that calls a PyboostRunner is being exported"
    with pytest.raises(BackendError, match=text):
        export(axpy, (3,), (3,))
    text = r"extension function: expected numbers for the shape of an argument; got \(n\)"
    with pytest.raises(InferenceValueError, match=text):
        export(axpy, *[jax.export.symbolic_shape("n")] * 2)


# ---- another process


def with_gradient(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: (op(x), jax.grad(lambda x: op(x).sum())(x))


def copy_libraries(exported: jax.export.Exported, folder: Path) -> list[str]:
    """Copies the libraries that a program names out of the build cache; returns their hashes."""
    contents = sorted(set(re.findall(r'library = "(\w+)"', exported.mlir_module())))
    for content in contents:
        path = next(Path(os.environ["MSOPS_CACHE_DIR"]).glob(f"objects/*/{content}/*"))
        shutil.copy(path, folder / f"{content[:8]}.so")
    return contents


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of exported programs, with folders of their libraries: ``here`` and ``outside``."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "here").mkdir()
    (folder / "outside").mkdir()
    (folder / "here" / "broken.so").write_bytes(b"no library")

    def save(name: str, exported: jax.export.Exported, vjp_order: int = 0) -> bytes:
        content = bytes(exported.serialize(vjp_order))
        (folder / name).write_bytes(content)
        return content

    op = aot("Multiply", bprop=multiply_bprop)
    multiply = export(lambda x, y: op(x, y) + x, *[jax.export.symbolic_shape("b, 2")] * 2)
    content = save("multiply", multiply, vjp_order=1)
    (name,) = copy_libraries(multiply, folder / "here")
    library = name.encode()
    assert content.count(library) >= 1
    (folder / "tampered").write_bytes(content.replace(library, library[::-1]))

    native = export(with_gradient(loops(decay, "native")), (3,))
    save("native loops", native)
    copy_libraries(native, folder / "here")
    save("array operations", export(with_gradient(loops(decay, "xla")), (3,)))

    roots = msops.Custom(f"{KERNELS / 'parallel_ops.cc'}:ParallelSqrt", first, first)
    outside = export(roots, (3,))
    save("outside the allowed folder", outside)
    copy_libraries(outside, folder / "outside")
    return folder


CHILD = """
import json, os, sys
import jax, jax.numpy as jnp, numpy as np
if "register" in sys.argv:
    import msops
    msops.register_ffi_targets()

def load(name):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        return jax.export.deserialize(bytearray(file.read())).call

def call(name, function, *inputs):
    try:
        report[name] = [array.tolist() for array in jax.tree.leaves(jax.jit(function)(*inputs))]
    except Exception as error:
        report[name] = str(error)

report = {}
x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
for size in (1, 3):
    call(f"multiply {size}", load("multiply"), x[:size], x[:size] + 1)
slope = jax.grad(lambda x, y: load("multiply")(x, y).sum())
call("gradient", slope, x, x + 1)
call("tampered", load("tampered"), x, x)
for name in ("native loops", "array operations", "outside the allowed folder"):
    call(name, load(name), x[:, 0])
assert "register" in sys.argv or "msops" not in sys.modules
print(json.dumps(report))
"""


def run(
    folder: Path, *arguments: str, cache: str = "", library_path: str = "", allowed: str = ""
) -> tuple[dict[str, Any], str]:
    """Runs the programs of a folder in a process that made none of them."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "MSOPS_CACHE_DIR": cache or str(folder / "cache"),
            "MSOPS_LIBRARY_PATH": library_path or f"{folder / 'here'}:{folder / 'outside'}",
            "MS_CUSTOM_AOT_WHITE_LIST": allowed or str(folder / "here"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), done.stderr


# y[0] = x[0], y[i] = x[i] - y[i - 1] / 2; and what each x adds to the sum of all y.
DECAY = [[1.0, 2.5, 3.75], [0.75, 0.5, 1.0]]


def test_programs_run_where_their_libraries_are(programs: Path) -> None:
    report, stderr = run(programs, "register")
    assert report["multiply 1"] == [[[1 * 2 + 1, 2 * 3 + 2]]]
    assert report["multiply 3"] == [[[3, 8], [15, 24], [35, 48]]]
    assert report["gradient"] == [[[3, 4], [5, 6], [7, 8]]]
    assert report["native loops"] == DECAY
    assert report["array operations"] == DECAY

    name = r"Library float_ops\.cc \(([0-9a-f]{12})\)"
    assert re.search(
        name + r": expected to find it by its hash, but no library here has it:\n"
        r"  hash \1[0-9a-f]{52}\n(?s:.*)set MSOPS_LIBRARY_PATH to that folder, "
        r"and call msops\.register_ffi_targets\(\)\.",
        report["tampered"],
    ), report["tampered"]
    assert "no library here has it" in report["outside the allowed folder"]
    assert "MS_CUSTOM_AOT_WHITE_LIST" in stderr


def test_programs_run_with_the_cache_of_this_machine_alone(programs: Path) -> None:
    cache, nowhere = os.environ["MSOPS_CACHE_DIR"], str(programs / "nowhere")
    report, _ = run(programs, "register", cache=cache, library_path=nowhere, allowed=cache)
    assert report["multiply 1"] == [[[1 * 2 + 1, 2 * 3 + 2]]]
    assert report["gradient"] == [[[3, 4], [5, 6], [7, 8]]]
    assert report["native loops"] == DECAY
    assert f"looked in the cache folder {cache}" in report["tampered"]


def test_without_msops_programs_without_native_kernels_run(programs: Path) -> None:
    report, _ = run(programs)
    assert report["array operations"] == DECAY
    assert "msops_aot" in report["native loops"]
