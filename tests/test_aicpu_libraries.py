"""AICPU ops: their op info, the libraries they find or build, and the programs they make."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from aicpu_cases import TOGETHER, UNOPTIMISED
from aicpu_harness import (
    DOUBLE,
    PROBE,
    X,
    build_with_plain_compiler,
    info,
    named_op,
    probe,
    write_times,
)
from conftest import ROOT

from msops import Custom, errors
from msops.ops import CustomRegOp, DataType, custom_info_register

# Op info.


def test_op_info_is_required() -> None:
    with pytest.raises(
        errors.OpInfoValueError, match=r"requires op info for target 'Ascend'; got none"
    ):
        Custom(PROBE, (1,), np.float32, func_type="aicpu")
    with pytest.raises(ValueError, match="for target 'Ascend'; got 'CPU'"):
        Custom(
            PROBE,
            (1,),
            np.float32,
            func_type="aicpu",
            reg_info=CustomRegOp("Log").input(0, "x").output(0, "y").target("CPU").get_op_info(),
        )


def test_rows_for_ascend_guard() -> None:
    row = CustomRegOp("Times").input(0, "x").output(0, "y").target("Ascend")
    row.dtype_format(DataType.F16_Default, DataType.F16_Default)
    op = Custom(
        PROBE, (6,), np.float32, func_type="aicpu", reg_info=row.get_op_info(), build=UNOPTIMISED
    )
    with pytest.raises(errors.OpInfoTypeError, match=r"on Ascend.*match no row"):
        op(X)


def test_kernel_that_is_not_there_is_an_error_that_lists_those_that_are() -> None:
    with pytest.raises(
        errors.KernelError, match="has no kernel Absent:\n  it has: Attributes Cores"
    ):
        probe("Absent", (6,), np.float32, X)


@pytest.mark.parametrize("option", [{"host": True}, {"cxx11_abi": True}])
def test_options_of_other_kinds_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentValueError, match=f"option {next(iter(option))} is for"):
        probe("Log", (), np.int32, X, **option)


@pytest.mark.parametrize("func", ["probe.so", "probe.cc:Log", "", [], ["a.cc", 3], 7, "a.cu"])
def test_func_that_is_no_source_is_an_error(func: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="expected a function, a name, or C\\+\\+"):
        Custom(func, (1,), np.float32, func_type="aicpu", reg_info=info("Log"))


def test_out_shape_is_required() -> None:
    with pytest.raises(
        errors.ArgumentValueError, match="out_shape is required for func_type 'aicpu"
    ):
        probe("Log", None, np.int32, X)


# Libraries by name.


def test_library_is_found_in_msops_aicpu_path(tmp_path, monkeypatch) -> None:
    build_with_plain_compiler(write_times(tmp_path, 2), tmp_path / "libtimes.so")
    monkeypatch.setenv("MSOPS_AICPU_PATH", f"{tmp_path / 'none'}:{tmp_path}")
    np.testing.assert_array_equal(named_op("times")(X), 2 * X)
    np.testing.assert_array_equal(named_op("libtimes.so")(X), 2 * X)
    np.testing.assert_array_equal(jax.jit(jax.vmap(named_op("times")))(X), 2 * X)


def test_library_is_found_by_path(tmp_path, monkeypatch) -> None:
    build_with_plain_compiler(write_times(tmp_path, 2), tmp_path / "times.so")
    np.testing.assert_array_equal(named_op(str(tmp_path / "times.so"))(X), 2 * X)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(named_op("./times.so")(X), 2 * X)


def test_library_is_found_beside_the_ops_function(tmp_path) -> None:
    build_with_plain_compiler(write_times(tmp_path, 3), tmp_path / "libtimes.so")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import mindspore as ms
            import numpy as np
            from mindspore import ops
            from mindspore.ops import CustomRegOp, custom_info_register

            ms.set_context(device_target="Ascend")

            @custom_info_register(
                CustomRegOp("Times").input(0, "x").output(0, "y")
                .attr("cust_aicpu", "required", "str", default_value="times")
                .target("Ascend").get_op_info()
            )
            def times():
                return

            op = ops.Custom(times, lambda x: x, lambda x: x, func_type="aicpu")
            print(op(ms.Tensor(np.ones(2, np.float64).astype(np.float32))))
        """)
    )
    # lambda x: the attribute has a default, so the call does not give it.
    done = subprocess.run(
        [sys.executable, "-m", "msops", "run", str(script)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[3. 3.]\n"


def test_an_op_may_be_a_name_alone(tmp_path, monkeypatch) -> None:
    build_with_plain_compiler(write_times(tmp_path, 5), tmp_path / "libtimes.so")
    monkeypatch.setenv("MSOPS_AICPU_PATH", str(tmp_path))
    row = CustomRegOp("Times").input(0, "x").output(0, "y").target("Ascend")
    row.attr("cust_aicpu", "required", "str", default_value="times")
    op = Custom("times", lambda x: x, lambda x: x, "aicpu", reg_info=row.get_op_info())
    np.testing.assert_array_equal(op(X), 5 * X)


def test_library_that_is_nowhere_is_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MSOPS_AICPU_PATH", str(tmp_path))
    with pytest.raises(errors.BuildError) as caught:
        named_op("absent")(X)
    assert "there is no library libabsent.so, which cust_aicpu='absent' names" in str(caught.value)
    assert f"looked in {tmp_path}\n  looked in {ROOT / 'tests'}" in str(caught.value)


def test_op_info_without_a_name_of_the_library_is_an_error() -> None:
    @custom_info_register(info("Times"))
    def times():
        """Stands for the kernel."""

    with pytest.raises(errors.OpInfoValueError, match="has no attribute cust_aicpu"):
        Custom(times, (1,), np.float32, func_type="aicpu")


def test_library_of_something_else_is_an_error(tmp_path) -> None:
    source = tmp_path / "other.cc"
    source.write_text('extern "C" int Add() { return 0; }')
    build_with_plain_compiler(source, tmp_path / "other.so")
    with pytest.raises(errors.KernelError, match=r"expected a library of AICPU kernels.*got none"):
        named_op(str(tmp_path / "other.so"))(X)


def test_library_of_other_headers_is_an_error(tmp_path) -> None:
    source = tmp_path / "other.cc"
    source.write_text('extern "C" unsigned msops_aicpu_version() { return 99; }')
    build_with_plain_compiler(source, tmp_path / "other.so")
    with pytest.raises(
        errors.KernelError, match="for version 1 of msops's headers, got version 99"
    ):
        named_op(str(tmp_path / "other.so"))(X)


def test_two_libraries_keep_their_kernels_apart(tmp_path) -> None:
    for factor in (2, 3):
        build_with_plain_compiler(write_times(tmp_path, factor), tmp_path / f"by{factor}.so")
    for factor in (2, 3, 2):
        op = named_op(str(tmp_path / f"by{factor}.so"))
        np.testing.assert_array_equal(op(X), factor * X)


def test_rebuilt_library_is_used(tmp_path) -> None:
    library = tmp_path / "times.so"
    for factor in (2, 5):
        build_with_plain_compiler(write_times(tmp_path, factor), library)
        np.testing.assert_array_equal(named_op(str(library))(X), factor * X)


@pytest.mark.slow
def test_edited_sources_and_headers_are_built_anew(tmp_path) -> None:
    main = write_times(tmp_path, 2)
    main.write_text('#include "factor.h"\nfloat Factor();\n' + DOUBLE.replace("FACTOR", "Factor()"))
    (tmp_path / "more").mkdir()
    more, header = tmp_path / "more" / "factor.cc", tmp_path / "more" / "factor.h"
    (tmp_path / "factor.h").write_text("")
    more.write_text('#include "factor.h"\nfloat Factor() { return FACTOR; }')

    def run() -> Any:
        op = Custom(
            [str(main), str(more)],
            lambda x: x,
            lambda x: x,
            func_type="aicpu",
            reg_info=info("Times"),
            build=UNOPTIMISED,
        )
        return op(X)

    for factor in (2, 3):
        header.write_text(f"#define FACTOR {factor}\n")
        np.testing.assert_array_equal(run(), factor * X)
    more.write_text("float Factor() { return 4; }")
    np.testing.assert_array_equal(run(), 4 * X)


def test_allow_list_covers_every_source(tmp_path, monkeypatch) -> None:
    source = write_times(tmp_path, 2)
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "elsewhere"))
    with pytest.raises(errors.ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST"):
        Custom([str(source)], (1,), np.float32, func_type="aicpu", reg_info=info("Times"))


# Eigen.


def build_elsewhere(source: object, cache: Path) -> str:
    """Builds a source in a process that has no Eigen; returns what it prints."""
    code = f"""
import importlib.metadata
find = importlib.metadata.distribution

def find_others(name):
    if name == "cmeel-eigen":
        raise importlib.metadata.PackageNotFoundError(name)
    return find(name)

importlib.metadata.distribution = find_others
import numpy as np
from aicpu_harness import info
from msops import Custom, errors
op = Custom({str(source)!r}, (), np.int32, func_type="aicpu", reg_info=info("Times"))
try:
    print(op.explain(np.ones(3, np.float32)))
except errors.BuildError as error:
    print("refused:", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MSOPS_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
def test_kernel_without_eigen_compiles_without_it(tmp_path) -> None:
    source = write_times(tmp_path, 2)
    source.write_text('#include "utils/kernel_util.h"\n' + source.read_text())
    assert "the kernel runs as it is" in build_elsewhere(source, tmp_path / "cache")


@pytest.mark.slow
def test_missing_eigen_is_named_with_its_install_command(tmp_path) -> None:
    source = tmp_path / "needs_eigen.cc"
    source.write_text('#include "utils/eigen_tensor.h"\nEigen::half x;\n')
    told = build_elsewhere(source, tmp_path / "cache")
    assert re.search(r"refused: .*needs_eigen.cc needs Eigen(?s:.*)pip install 'msops", told), told


def test_msops_eigen_names_the_folder(tmp_path, monkeypatch) -> None:
    def build() -> None:
        Custom(
            PROBE, (), np.int32, func_type="aicpu", reg_info=info("Log"), build=UNOPTIMISED
        ).explain(X)

    monkeypatch.setenv("MSOPS_EIGEN", str(tmp_path))
    with pytest.raises(errors.BuildError, match="no Eigen/Core in MSOPS_EIGEN"):
        build()
    (tmp_path / "eigen3" / "Eigen").mkdir(parents=True)
    (tmp_path / "eigen3" / "Eigen" / "Core").write_text("#error this one\n")
    with pytest.raises(errors.BuildError, match="this one"):
        build()


@pytest.mark.slow
def test_eigens_assertions_are_errors(tmp_path) -> None:
    source = tmp_path / "assertion.cc"
    body = "Eigen::VectorXf a(3); a(ctx.Input(0)->NumElements()) = 1; return 0;"
    text = DOUBLE.replace("#include", "#include <Eigen/Dense>\n#include", 1)
    source.write_text(text[: text.index("    auto *x")] + body + text[text.index("  }\n};") :])
    op = Custom(
        str(source), (1,), np.float32, func_type="aicpu", reg_info=info("Times"), build=UNOPTIMISED
    )
    with pytest.raises(errors.KernelError, match="std::logic_error: Eigen expected index >= 0"):
        op(X)


# Programs.


def test_program_names_no_path() -> None:
    op = Custom(PROBE, (), np.int32, func_type="aicpu", reg_info=info("Log"), build=UNOPTIMISED)
    text = op.lower_text(X)
    assert "msops_aicpu" in text
    assert str(ROOT) not in text


@pytest.mark.slow
def test_library_holds_no_path_of_this_machine() -> None:
    # Its check macros are expanded in the headers, too.
    with pytest.raises(errors.KernelError, match="has no kernel Times"):
        named_op("mindspore_aicpu_kernels")(X)
    cache = Path(os.environ["MSOPS_CACHE_DIR"])
    built = [path.read_bytes() for path in cache.glob("objects/*/*/dropout2d.so")]
    assert built
    for content in built:
        assert b"msops/utils/kernel_util.h" in content
        assert str(ROOT).encode() not in content


def test_calls_overlap_and_have_kernels_of_their_own() -> None:
    op = Custom(
        TOGETHER,
        (1001,),
        np.float32,
        func_type="aicpu",
        reg_info=info("StandardNormal", seed=1),
        build=UNOPTIMISED,
    )
    expected = np.asarray(op(X, 7))
    failures: list[int] = []

    def work() -> None:
        failures.extend(i for i in range(20) if not (np.asarray(op(X, 7)) == expected).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_bprop_differentiates() -> None:
    op = Custom(
        str(ROOT / "tests" / "aicpu_kernels" / "multiply.cc"),
        lambda x, y: x,
        lambda x, y: x,
        func_type="aicpu",
        reg_info=info("Mul", 2),
        bprop=lambda x, y, out, dout: (dout * y, dout * x),
        build=UNOPTIMISED,
    )
    gradient = jax.jit(jax.grad(lambda x, y: op(x, y).sum(), argnums=(0, 1)))(X, X + 1)
    np.testing.assert_array_equal(gradient[0], X + 1)
    np.testing.assert_array_equal(gradient[1], X)
