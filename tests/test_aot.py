"""aot: MindSpore's C ABI through Custom, sources and libraries, companions, attributes."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import DTYPE_NAMES, KERNELS
from custom_ops import FLOAT_OPS, aot, first, scale_sum_info

from msops import Custom, errors, get_include
from msops.ops import CustomRegOp

X = jnp.array([1.0, 2.0, 4.0])

# The tutorial's kernel: it reads nparam entries of a two-dimensional shape.
READS_PAST = (KERNELS / "reads_past.cc").read_text()

CONSTANT = (
    'extern "C" int F(int n, void **p, int *, long **, const char **, void *, void *) '
    "{{ static_cast<float *>(p[n - 1])[0] = {}; return 0; }}"
)


def build(source: str, target: Path, *flags: str) -> Path:
    """Compiles as a user would, by hand."""
    path = target.with_suffix(".cc")
    path.write_text(source)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{get_include()}", *flags]
    subprocess.run([*command, "-o", str(target), str(path)], check=True)
    return target


def test_a_kernel_that_reads_past_its_shape_runs_from_library_and_source(tmp_path: Path) -> None:
    library = build(READS_PAST, tmp_path / "add.so")
    x0 = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)
    x1 = np.array([[2.0, 2.0], [3.0, 3.0]], np.float32)
    for func in (f"{library}:CustomAdd", f"{tmp_path}/add.cc:CustomAdd"):
        got = Custom(func, lambda x, _: x, lambda x, _: x, "aot")(x0, x1)
        np.testing.assert_array_equal(got, [[2.0, 2.0], [4.0, 4.0]])


def test_path_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(CONSTANT.format(5), tmp_path / "five.so")
    monkeypatch.chdir(tmp_path)
    for func in ("./five.so:F", "five.so:F", "five.cc:F"):
        assert Custom(func, [1], np.float32)(X)[0] == 5


def test_a_variable_is_no_kernel(tmp_path: Path) -> None:
    source = 'extern "C" float Scale = 2; ' + CONSTANT.format(5)
    for func in (build(source, tmp_path / "both.so"), tmp_path / "both.cc"):
        assert Custom(f"{func}:F", [1], np.float32)(X)[0] == 5
        with pytest.raises(errors.BuildError, match=f"{func.name} exports no function Scale"):
            Custom(f"{func}:Scale", [1], np.float32)(X)


def test_rebuilt_library_at_the_same_path_runs_the_new_code(tmp_path: Path) -> None:
    results = []
    for value in (1, 2):
        library = build(CONSTANT.format(value), tmp_path / "value.so")
        op = Custom(f"{library}:F", [1], np.float32)
        results.append(op)
        assert op(X)[0] == value
    assert [float(op(X)[0]) for op in results] == [1, 2]


@pytest.mark.parametrize("abi", [0, 1])
def test_library_of_either_string_abi_reads_attributes(tmp_path: Path, abi: int) -> None:
    library = tmp_path / "ops.so"
    build(FLOAT_OPS.read_text(), library, f"-D_GLIBCXX_USE_CXX11_ABI={abi}")
    op = Custom(f"{library}:ScaleSum", lambda x, s: x[:1], first, reg_info=scale_sum_info())
    np.testing.assert_array_equal(op(jnp.ones((2, 3)), 2.0), [6.0, 6.0])


def test_forced_string_abi_is_this_ops_alone(tmp_path: Path) -> None:
    library = tmp_path / "ops.so"
    build(FLOAT_OPS.read_text(), library, "-D_GLIBCXX_USE_CXX11_ABI=0")
    infer = lambda x, s: x[:1]  # noqa: E731
    told = Custom(f"{library}:ScaleSum", infer, first, reg_info=scale_sum_info())
    forced = Custom(f"{library}:ScaleSum", infer, first, reg_info=scale_sum_info(), cxx11_abi=False)
    wrong = Custom(f"{library}:Copy", first, first, cxx11_abi=True)
    x = jnp.ones((2, 3))
    for op in (told, forced):
        np.testing.assert_array_equal(op(x, 2.0), [6.0, 6.0])
    wrong(x)
    kernels = [op._resolve().operator.definition.kernel for op in (told, forced, wrong)]
    assert kernels[0].library == kernels[1].library
    assert kernels[2].library.hash != kernels[0].library.hash
    np.testing.assert_array_equal(told(jnp.ones((1, 3)), 2.0), [6.0])


@pytest.mark.parametrize(
    "dtype",
    DTYPE_NAMES,
)
def test_kernel_sees_every_dtype_by_its_name(dtype: str) -> None:
    with jax.enable_x64(True):
        x = jnp.arange(7).astype(dtype)
        got = aot("Copy")(x)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


def test_awkward_numpy_inputs_are_made_plain() -> None:
    op = aot("Multiply")
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = base[::2, ::-2] * base[::2, ::-2]
    np.testing.assert_array_equal(op(base[::2, ::-2], base[::2, ::-2]), expected)
    np.testing.assert_array_equal(op(base.T, base.T), base.T**2)
    big = base.astype(">f4")
    np.testing.assert_array_equal(op(big, base), base**2)
    read_only = np.broadcast_to(np.float32(3), (4, 6))
    np.testing.assert_array_equal(op(base, read_only), 3 * base)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_zero_size_and_scalar_arrays_work(shape: tuple[int, ...]) -> None:
    x = jnp.full(shape, 3.0)
    assert aot("Multiply")(x, x).shape == shape
    np.testing.assert_array_equal(jax.jit(aot("Multiply"))(x, x), x * x)


def test_a_call_without_output_elements_runs_no_kernel_unless_it_has_effects() -> None:
    nothing = jnp.zeros((0, 3))
    # The kernel refuses a single input.
    assert aot("Multiply", first, first)(nothing).shape == (0, 3)
    with pytest.raises(errors.KernelError):
        jax.block_until_ready(aot("Multiply", first, first, stateful=True)(nothing))


def test_python_numbers_are_scalars() -> None:
    assert aot("Multiply")(2.0, jnp.float32(3)) == 6


def test_rank_above_eight_is_seen_whole() -> None:
    x = jnp.arange(1024.0).reshape((2,) * 10)
    np.testing.assert_array_equal(aot("Multiply")(x, x), x**2)


def test_list_of_any_length_is_a_dynamic_input() -> None:
    op = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])
    for count in (1, 2, 5):
        np.testing.assert_array_equal(op([X] * count), count * X)
        np.testing.assert_array_equal(jax.jit(op)(tuple([X] * count)), count * X)


def test_shape_and_type_are_inferred_by_the_library() -> None:
    op = Custom(f"{FLOAT_OPS}:Concat")
    np.testing.assert_array_equal(op(X, X[:2]), [1, 2, 4, 1, 2])
    np.testing.assert_array_equal(jax.jit(op)(X, X), [1, 2, 4, 1, 2, 4])
    np.testing.assert_array_equal(Custom(f"{FLOAT_OPS}:Concat", None, np.float32)(X, X), [*X, *X])


def test_several_outputs_are_inferred_by_the_library(tmp_path: Path) -> None:
    source = tmp_path / "split.cc"
    source.write_text(
        '#include <cstring>\n#include "custom_aot_extra.h"\n'
        "enum TypeId : int {};\n"
        'extern "C" std::vector<std::vector<int64_t>> SplitInferShape(int *, int64_t **shapes, '
        'AotExtra *extra) { int64_t at = extra->Attr<int64_t>("at"); '
        "return {{at}, {shapes[0][0] - at}}; }\n"
        'extern "C" std::vector<TypeId> SplitInferType(std::vector<TypeId> ids, AotExtra *) '
        "{ return {ids[0], ids[0]}; }\n"
        'extern "C" int Split(int, void **p, int *, int64_t **shapes, const char **, void *, '
        "void *) { std::memcpy(p[1], p[0], shapes[1][0] * 4); "
        "std::memcpy(p[2], (float *)p[0] + shapes[1][0], shapes[2][0] * 4); return 0; }\n"
    )
    info = (
        CustomRegOp("Split")
        .input(0, "x")
        .output(0, "head")
        .output(1, "tail")
        .attr("at", "required", "int")
        .target("CPU")
        .get_op_info()
    )
    head, tail = Custom(f"{source}:Split", reg_info=info)(X, 1)
    np.testing.assert_array_equal(head, X[:1])
    np.testing.assert_array_equal(tail, X[1:])


def test_attributes_come_from_op_info_defaults_too() -> None:
    info = (
        CustomRegOp("ScaleSum")
        .input(0, "x")
        .output(0, "y")
        .attr("scale", "optional", "float", "0.5")
        .target("CPU")
        .get_op_info()
    )
    op = aot("ScaleSum", lambda x, *_: x[:1], first, reg_info=info)
    np.testing.assert_array_equal(op(jnp.ones((1, 4))), [2.0])
    np.testing.assert_array_equal(op(jnp.ones((1, 4)), 3.0), [12.0])


def test_attributes_that_compare_equal_stay_apart() -> None:
    op = aot("ScaleSum", lambda x, s: x[:1], first, reg_info=scale_sum_info())
    programs = [
        jax.jit(lambda x, s=s: op(x, s)).lower(jnp.ones((1, 1))).as_text() for s in (0.0, -0.0)
    ]
    assert programs[0] != programs[1]


def test_prim_attr_reaches_the_kernel() -> None:
    op = aot("ScaleSum", lambda x: x[:1], first)
    assert op.add_prim_attr("scale", 4.0) is op
    np.testing.assert_array_equal(op(jnp.ones((1, 2))), [8.0])
    op.add_prim_attr("scale", 5.0)
    np.testing.assert_array_equal(op(jnp.ones((1, 2))), [10.0])
    with pytest.raises(errors.ArgumentTypeError, match="expected attribute 'scale' to be bool"):
        op.add_prim_attr("scale", object())


def test_missing_attribute_is_told_by_the_kernel_that_asks() -> None:
    with pytest.raises(RuntimeError, match="there is no attribute called scale"):
        aot("ScaleSum", lambda x: x[:1], first)(jnp.ones((1, 2)))


def test_threads_may_call_one_op_at_once() -> None:
    op = jax.jit(lambda x: aot("Multiply")(x, x) + 1)
    wrong = []

    def work(seed: int) -> None:
        x = jnp.full((257,), float(seed))
        for _ in range(50):
            if not np.array_equal(op(x), x * x + 1):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_program_names_the_library_by_content_only() -> None:
    text = jax.jit(aot("Multiply")).lower(X, X).as_text()
    (line,) = [line for line in text.splitlines() if "custom_call" in line]
    assert "@msops_aot" in line
    assert 'library_name = "float_ops.cc"' in line
    assert str(FLOAT_OPS.parent) not in text


def test_stateful_kernel_runs_once_per_call_in_a_program() -> None:
    count = aot("Count", [1], np.float32, stateful=True)

    @jax.jit
    def program(x: Any) -> Any:
        count(x)
        return count(x), count(x)

    first_run, second_run = program(X), program(X)
    assert float(second_run[0][0] - first_run[0][0]) == 3
    plain = aot("Count", [1], np.float32)
    merged = jax.jit(lambda x: (plain(x), plain(x)))(X)
    assert merged[0] == merged[1]


def test_stateful_kernel_is_refused_in_checkpoint() -> None:
    count = aot("Count", [1], np.float32, stateful=True)
    with pytest.raises(NotImplementedError, match="Custom 'Count' is stateful: it runs once per"):
        jax.grad(jax.checkpoint(lambda x: (count(jax.lax.stop_gradient(x)) * x).sum()))(X)


def test_sources_in_c_are_compiled_too(tmp_path: Path) -> None:
    source = tmp_path / "twice.c"
    source.write_text(
        "#include <stdint.h>\n"
        "int Twice(int n, void **p, int *ndims, int64_t **shapes, const char **dtypes, void *s, "
        "void *e) { for (int64_t i = 0; i < shapes[0][0]; ++i) ((float *)p[1])[i] = "
        "2 * ((float *)p[0])[i]; return 0; }\n"
    )
    np.testing.assert_array_equal(Custom(f"{source}:Twice", first, first)(X), 2 * X)


def test_kernel_error_after_a_success_is_the_same_error(tmp_path: Path) -> None:
    source = tmp_path / "moody.cc"
    source.write_text(
        'extern "C" int F(int, void **p, int *, long **, const char **, void *, void *) '
        "{ return static_cast<float *>(p[0])[0] < 0 ? 9 : 0; }"
    )
    op = Custom(f"{source}:F", first, first)
    for _ in range(3):
        op(np.float32([1]))
        with pytest.raises(errors.KernelError, match="kernel returned 9, expected 0"):
            jax.block_until_ready(op(np.float32([-1])))


def test_white_list_admits_only_what_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "allowed", tmp_path / "allowed-not"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "f.cc").write_text(CONSTANT.format(1))
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(inside))
    assert Custom(f"{inside}/f.cc:F", [1], np.float32)(X)[0] == 1
    for path in (outside / "f.cc", inside / ".." / "allowed-not" / "f.cc"):
        with pytest.raises(errors.ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST"):
            Custom(f"{path}:F", [1], np.float32)
    (inside / "link.cc").symlink_to(outside / "f.cc")
    with pytest.raises(errors.ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST"):
        Custom(f"{inside}/link.cc:F", [1], np.float32)


def test_library_with_device_code_is_refused_on_the_cpu(tmp_path: Path) -> None:
    marked = '__attribute__((section(".nv_fatbin"))) char fatbin[8] = {1};\n'
    library = build(marked + CONSTANT.format(1), tmp_path / "gpu.so")
    with pytest.raises(errors.BackendError, match=r"gpu\.so holds GPU code, and the program runs"):
        Custom(f"{library}:F", [1], np.float32)(X)
    info = CustomRegOp().input(0, "x").output(0, "y").target("CPU").get_op_info()
    assert Custom(f"{library}:F", [1], np.float32, reg_info=info)(X)[0] == 1
