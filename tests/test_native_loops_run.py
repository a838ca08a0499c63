"""Kernels of the loop IR as C: what they compute, against the interpreter and numpy."""

from __future__ import annotations

import ctypes
import math
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from loop_agreement import assert_agree
from loop_corpus import CORPUS, specialised
from loop_idioms import idioms
from loop_ir import (
    PASSES_TO_C,
    PASSES_TO_CUDA,
    accesses_in,
    analyse,
    check_bounds,
    facts_of,
    find_unwritten,
    interpret,
    kernel_text,
    parse_kernel,
    run_passes,
)
from loop_ir import c_cost as cost
from loop_native import build_together, call, call_for_code, prepared, printed, shipped
from loop_patterns import patterns
from loop_strategies import WIDE_DTYPES, Case, kernels
from quick_cases import in_turn
from random_examples import examples


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers_are_products(dtype: str, tmp_path: Path) -> None:
    powers = range(3, 9)
    stores = "".join(f"y[{p - 3}, i] = pow(x[i], {p}.0:{dtype}) " for p in powers)
    kernel = parse_kernel(f"""kernel k(x: {dtype}[400]) -> (y) {{
      buffer y: {dtype}[6, 400]
      parallel i in 0 .. 400 {{ {stores} }}
    }}""")
    arranged, source = shipped(kernel, 0)
    assert "pow(" not in source.text
    assert "powf(" not in source.text
    rng = np.random.default_rng(0)
    x = rng.normal(size=400) * 10.0 ** rng.uniform(-9, 9, 400)
    x[:7] = 0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0
    x = x.astype(dtype)
    (got,) = call(build_together(tmp_path, [source]), arranged, source, [x])
    with np.errstate(all="ignore"):
        want = np.stack([np.power(x.astype(np.longdouble), p) for p in powers]).astype(dtype)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    least = np.finfo(dtype).tiny
    np.testing.assert_allclose(got, want, rtol=5 * np.finfo(dtype).eps, atol=least)


def random_cases(
    count: int, start: int, strategy: SearchStrategy[Case] | None = None
) -> list[Case]:
    """Returns random kernels, the same at every run: they are built together."""
    cases: list[Case] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(kernels(dtypes=WIDE_DTYPES) if strategy is None else strategy)
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    return cases


def check_all(folder, cases: list[Case]) -> None:
    """Builds kernels together, and compares each with the interpreter."""
    made = [shipped(case.kernel, number) for number, case in enumerate(cases)]
    ready, sources = zip(*made, strict=True)
    library = build_together(folder, sources)
    for case, kernel, source in zip(cases, ready, sources, strict=True):
        expected = interpret(case.kernel, case.inputs)
        got = call(library, kernel, source, case.inputs)
        try:
            assert_agree(case.kernel, case.inputs, expected, got)
        except AssertionError as error:
            error.add_note(f"{kernel_text(case.kernel)}\n{source.text}")
            raise


@pytest.mark.parametrize(("blocks", "size"), in_turn(["one", "backwards"], [3, 40]))
def test_the_corpus_agrees_with_numpy(tmp_path, monkeypatch, size, blocks):
    if blocks == "backwards":
        monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-12)
    inputs = [case.inputs(np.random.default_rng(size), size) for case in CORPUS]
    kernels = [specialised(c, x) for c, x in zip(CORPUS, inputs, strict=True)]
    made = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    ready, sources = zip(*made, strict=True)
    library = build_together(tmp_path, sources)
    for case, given_arrays, kernel, source in zip(CORPUS, inputs, ready, sources, strict=True):
        case.check(given_arrays, call(library, kernel, source, given_arrays))


@pytest.mark.parametrize("passes", [PASSES_TO_C, PASSES_TO_CUDA], ids=["C", "CUDA"])
def test_facts_of_a_kernel_after_passes_are_true_of_it(monkeypatch, passes):
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-12)
    for case in CORPUS:
        known = analyse(specialised(case, case.inputs(np.random.default_rng(0), 40)))
        after = run_passes(known.kernel, passes)
        unproven, overwritten = facts_of(after, known)
        left = {access.buffer for access in accesses_in(after.body)}
        assert overwritten & left <= find_unwritten(after).overwritten, case.name
        assert unproven == check_bounds(after).unproven, case.name


def run(folder, text: str, *inputs: np.ndarray, as_written: bool = False) -> list[np.ndarray]:
    """Returns what a kernel given as text computes, loops as written or prepared."""
    kernel = parse_kernel(text)
    ready = kernel if as_written else prepared(kernel)
    source = printed(ready)
    return call(build_together(folder, [source]), ready, source, inputs)


def test_random_kernels_agree_with_the_interpreter(tmp_path):
    check_all(tmp_path, random_cases(examples(120), 1))


def test_random_patterns_agree_with_the_interpreter(tmp_path):
    check_all(tmp_path, random_cases(examples(60), 5, patterns()))


def test_random_idioms_agree_with_the_interpreter(tmp_path):
    check_all(tmp_path, random_cases(examples(60), 7, idioms()))


def test_random_kernels_in_blocks_run_backwards_agree(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-13)
    cases = random_cases(examples(165), 3)
    check_all(tmp_path, cases)
    texts = [printed(prepared(case.kernel)).text for case in cases]
    assert sum("ms_task_" in text for text in texts) >= 10


def test_threads_share_the_zeros_of_a_large_result(tmp_path):
    kernel = parse_kernel("""kernel inside(x: float64[721, 901]) -> (y) {
      buffer y: float64[721, 901]
      parallel i in 1 .. 720 {
        parallel j in 1 .. 900 {
          if (x[i, j] > 2.0:float64) { y[i, j] = (x[i, j - 1] + x[i, j + 1]) * x[i, j] }
        }
      }
    }""")
    arranged, source = shipped(kernel, 0)
    assert source.text.count("ms_zero, params[1])") == 1
    x = np.random.default_rng(0).integers(1, 5, (721, 901)).astype(np.float64)
    (y,) = call(build_together(tmp_path, [source]), arranged, source, [x])
    inside = (x[:, :-2] + x[:, 2:]) * x[:, 1:-1]
    np.testing.assert_array_equal(y[1:-1, 1:-1], np.where(x[:, 1:-1] > 2, inside, 0)[1:-1])
    y[1:-1, 1:-1] = 0
    assert not y.any()


def test_threads_share_the_copy_of_a_large_parameter(tmp_path):
    kernel = parse_kernel("""kernel inside(x: float64[721, 901]) -> (x) {
      parallel i in 1 .. 720 {
        parallel j in 1 .. 900 { x[i, j] = x[i, j] * 3.0:float64 }
      }
    }""")
    arranged, source = shipped(kernel, 0)
    assert source.text.count("{params[1], params[0]}; ms_parallel_for") == 1
    x = np.random.default_rng(0).integers(1, 5, (721, 901)).astype(np.float64)
    (y,) = call(build_together(tmp_path, [source]), arranged, source, [x])
    want = x.copy()
    want[1:-1, 1:-1] *= 3
    np.testing.assert_array_equal(y, want)


# Operations, on all values where there are few, against numpy's or the interpreter's.


def binary_kernel(op: str, dtype: str, size: int) -> str:
    return f"""kernel f(a: {dtype}[{size}], b: {dtype}[{size}]) -> (c) {{
      buffer c: {dtype}[{size}]
      parallel i in 0 .. {size} {{ c[i] = {op} }}
    }}"""


INTEGER_OPS = {
    "a[i] + b[i]": np.add,
    "a[i] - b[i]": np.subtract,
    "a[i] * b[i]": np.multiply,
    "a[i] // b[i]": np.floor_divide,
    "a[i] % b[i]": np.remainder,
    "a[i] << b[i]": np.left_shift,
    "a[i] >> b[i]": np.right_shift,
    "min(a[i], b[i])": np.minimum,
    "max(a[i], b[i])": np.maximum,
    "a[i] & b[i]": np.bitwise_and,
    "a[i] | b[i]": np.bitwise_or,
    "a[i] ^ b[i]": np.bitwise_xor,
    # Sums that wrap inside of one, and before what depends on the sign.
    "((a[i] * b[i]) - (a[i] - (b[i] * b[i]))) // b[i]": lambda a, b: (a * b - (a - b * b)) // b,
    "(-(a[i] + b[i])) * (a[i] - b[i])": lambda a, b: -(a + b) * (a - b),
}


def edges(dtype: str) -> np.ndarray:
    """Returns values of an integer dtype, the least and the greatest and those around 0 first."""
    info = np.iinfo(dtype)
    near = [v for v in (-9, -8, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64) if v >= info.min]
    return np.array([info.min, info.min + 1, *near, info.max - 1, info.max], dtype)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integer_operations_are_numpys_on_the_edges(tmp_path, dtype):
    values = edges(dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    cases = [parse_kernel(binary_kernel(op, dtype, a.size)) for op in INTEGER_OPS]
    sources = [printed(kernel, number) for number, kernel in enumerate(cases)]
    library = build_together(tmp_path, sources)
    for kernel, source, function in zip(cases, sources, INTEGER_OPS.values(), strict=True):
        with np.errstate(all="ignore"):
            expected = function(a, b)
        # numpy leaves the remainder and quotient of the least number by -1 to the processor.
        np.testing.assert_array_equal(call(library, kernel, source, [a, b])[0], expected)


CASTS = [
    ("float32", dtype) for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "bool")
] + [("float64", dtype) for dtype in ("int16", "int32", "int64", "float16", "bfloat16")]


def test_casts_saturate_and_round(tmp_path):
    cases, inputs = [], []
    for source, target in CASTS:
        edge = [
            0.0,
            -0.0,
            0.4,
            -0.6,
            1.5,
            2.5,
            127.5,
            128.0,
            255.9,
            256.0,
            -129.0,
            65519.0,
            65520.0,
        ]
        edge += [2.0**n for n in (15, 31, 32, 63, 64)] + [-(2.0**n) for n in (15, 31, 63)]
        edge += [np.inf, -np.inf, np.nan, 1e-8, 3.3e38, 1.00390625, 1.01171875]
        x = np.array(edge, source)
        cases.append(
            parse_kernel(f"""kernel f(a: {source}[{x.size}]) -> (c) {{
              buffer c: {target}[{x.size}]
              parallel i in 0 .. {x.size} {{ c[i] = {target}(a[i]) }}
            }}""")
        )
        inputs.append(x)
    check_all(tmp_path, [Case(k, [x]) for k, x in zip(cases, inputs, strict=True)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_narrow_float_survives_and_operations_round_to_it(tmp_path, dtype):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    other = np.roll(values, 12345)
    kernel = f"""kernel f(a: {dtype}[65536], b: {dtype}[65536]) -> (c, d, e) {{
      buffer c: {dtype}[65536]
      buffer d: {dtype}[65536]
      buffer e: float32[65536]
      parallel i in 0 .. 65536 {{
        c[i] = (a[i] * b[i]) + a[i]
        d[i] = a[i]
        e[i] = float32(a[i])
      }}
    }}"""
    c, d, e = run(tmp_path, kernel, values, other)
    a, b = values.astype("float32"), other.astype("float32")
    with np.errstate(all="ignore"):
        expected = ((a * b).astype(values.dtype).astype("float32") + a).astype(values.dtype)
    np.testing.assert_array_equal(c.astype("float32"), expected.astype("float32"))
    np.testing.assert_array_equal(d.astype("float32"), a)
    np.testing.assert_array_equal(e, a)


TO_HALF = """kernel f(a: float32[{0}], d: float64[{0}]) -> (c, e, b) {{
  buffer c: float16[{0}]
  buffer e: float16[{0}]
  buffer b: bfloat16[{0}]
  parallel i in 0 .. {0} {{
    c[i] = float16(a[i])
    e[i] = float16(d[i])
    b[i] = bfloat16(d[i])
  }}
}}"""
FROM_HALF = """kernel f(a: float16[65536]) -> (c) {
  buffer c: float32[65536]
  parallel i in 0 .. 65536 { c[i] = float32(a[i]) }
}"""


@pytest.mark.parametrize("flags", [(), ("-U__FLT16_MANT_DIG__",)], ids=["type", "bits"])
def test_half_conversions_are_numpys_with_and_without_a_type_of_the_compiler(tmp_path, flags):
    halves = np.arange(1 << 16, dtype=np.uint16).view("float16")
    finite = np.sort(halves[np.isfinite(halves)].astype("float64"))
    ties = (finite[1:] + finite[:-1]) / 2
    # A double just off a tie is on it as a float.
    wide = np.concatenate([finite, ties, np.nextafter(ties, 1e9), np.nextafter(ties, -1e9)])
    wide = np.concatenate([wide, [65519.9999, 65520, 1e300, -np.inf, np.nan, 1e-60, 3e-8, -3e-8]])
    with np.errstate(over="ignore"):
        narrow = wide.astype("float32")
    to, back = parse_kernel(TO_HALF.format(wide.size)), parse_kernel(FROM_HALF)
    sources = [printed(to, 0), printed(back, 1)]
    library = build_together(tmp_path, sources, flags)
    with np.errstate(all="ignore"):
        expected = [narrow.astype("float16"), wide.astype("float16"), wide.astype("bfloat16")]
        got = call(library, to, sources[0], [narrow, wide])
        # ml_dtypes 0.6 rounds a double twice, through float32; once is never farther off.
        want, have = (result[2].astype("float64") for result in (expected, got))
        nearer = np.abs(have - wide) < np.abs(want - wide)
    assert nearer.sum() < 0.01 * wide.size
    expected[2] = np.where(nearer, got[2], expected[2])
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_array_equal(have.astype("float32"), want.astype("float32"))
        np.testing.assert_array_equal(np.signbit(have), np.signbit(want))
    (c,) = call(library, back, sources[1], [halves])
    np.testing.assert_array_equal(c, halves.astype("float32"))


FUNCTIONS = {
    "exp": (np.exp, 1.5), "log": (np.log, 1.5), "tanh": (np.tanh, 4), "erf": (math.erf, 6),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 3), "sin": (np.sin, 4), "cos": (np.cos, 4),
    "exp2": (np.exp2, 4), "expm1": (np.expm1, 4), "log1p": (np.log1p, 4), "atan": (np.arctan, 4),
    "sqrt": (np.sqrt, 0.5), "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "exp10": (lambda x: np.power(10.0, x), 4),
}  # fmt: skip


@pytest.mark.parametrize("mark", ["", " @vector(lanes)"], ids=["alone", "in vectors"])
def test_functions_are_within_their_ulps(tmp_path, mark):
    generator = np.random.default_rng(0)
    magnitudes = np.exp2(generator.uniform(-126, 127, 20000))
    x = np.concatenate(
        [
            generator.uniform(-90, 90, 20000),
            generator.uniform(-1, 1, 20000),
            magnitudes,
            -magnitudes,
        ]
    ).astype("float32")
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 88.72, 88.73, -87.3, -103.9]
    x[: len(special)] = special
    # NaN is NaN whatever its low bits are.
    x.view("uint32")[len(special) + 1] = 0x7FC00042
    # Where the quotient of erf is rounded up.
    x[len(special) :: 40] = np.linspace(3.6, 3.9, x[len(special) :: 40].size, dtype="float32")
    cases = [
        parse_kernel(f"""kernel f(a: float32[{x.size}]) -> (c) {{
          buffer c: float32[{x.size}]
          parallel i in 0 .. {x.size}{mark} {{ c[i] = {name}(a[i]) }}
        }}""")
        for name in FUNCTIONS
    ]
    sources = [printed(kernel, number) for number, kernel in enumerate(cases)]
    library = build_together(tmp_path, sources)
    for kernel, source, name in zip(cases, sources, FUNCTIONS, strict=True):
        function, ulps = FUNCTIONS[name]
        with np.errstate(all="ignore"):
            exact = np.vectorize(function)(x.astype("float64"))
            rounded = exact.astype("float32")
            (got,) = call(library, kernel, source, [x])
            same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
            # Below the normal numbers sigmoid may be 0: a sum with 1 has lost them.
            size = np.maximum(np.abs(rounded), np.float32(2**-126 if name == "sigmoid" else 0))
            error = np.abs(got.astype("float64") - exact) / np.spacing(size)
            if name == "sigmoid":
                same |= (np.abs(exact) < 2.0**-126) & (np.abs(got) < 2.0**-126)
        worst = np.argmax(np.where(same, 0, np.nan_to_num(error, nan=np.inf)))
        assert same[worst] or error[worst] <= ulps, (name, x[worst], got[worst], exact[worst])
        zeros = (x == 0) & (exact == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]), name)
        if name in ("tanh", "erf"):
            assert np.nanmax(np.abs(got)) == 1, name


def test_functions_of_functions_run_in_vectors():
    kernel = parse_kernel("""kernel mish(a: float32[999]) -> (c) {
      buffer c: float32[999]
      parallel i in 0 .. 999 @vector(lanes) { c[i] = a[i] * tanh(log(1.0:float32 + exp(a[i]))) }
    }""")
    in_vectors = r"ms_tanh_f32_\d+\(ms_log_f32_\d+\(1\.0f \+ ms_exp_f32_\d+\(.*&a\[i\]"
    assert re.search(in_vectors, printed(kernel).text)


def test_choices_between_choices_are_no_branches():
    kernel = parse_kernel("""kernel nearest(a: float32[999], b: float32[999]) -> (c) {
      buffer c: float32[999]
      parallel i in 0 .. 999 @vector(lanes) {
        c[i] = (a[i] > 0.0:float32) ? ((b[i] > 0.0:float32) ? ((a[i] < b[i]) ? a[i] : c[i]) : c[i])
          : c[i]
      }
    }""")
    text = printed(kernel).text
    in_vectors = re.findall(r"const ms_vector_float_\d+ ms_stored_1 = .*;", text)
    assert {line.count(" ? ") for line in in_vectors} == {3}
    # The last iterations run one by one.
    assert text.count("ms_select_f32(") == 1 + 3


def test_min_and_max_hand_on_nan_from_either_side(tmp_path):
    nan = np.float32(np.nan)
    a, b = np.array([nan, 1, nan, 2], "float32"), np.array([1, nan, nan, 3], "float32")
    for op, last in (("min", 2), ("max", 3)):
        (c,) = run(tmp_path, binary_kernel(f"{op}(a[i], b[i])", "float32", 4), a, b)
        np.testing.assert_array_equal(c, [nan, nan, nan, last])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", ["0.5", "2.0", "-1.0", "s[]"])
def test_powers_at_the_ends_of_the_floats(tmp_path, dtype, exponent):
    # Many of them, so that the loop is vectorised.
    most = float(np.finfo(dtype).max)
    values = [-np.inf, np.inf, -0.0, 0.0, np.nan, -1.0, 4.0, 0.25, most, -most]
    x = np.array(values * 7, dtype)
    power = exponent if exponent == "s[]" else f"{exponent}:{dtype}"
    text = f"""kernel f(a: {dtype}[{x.size}]) -> (c) {{
      buffer c: {dtype}[{x.size}]
      local s: {dtype}[] {{
        s[] = 0.5:{dtype}
        parallel i in 0 .. {x.size} {{ c[i] = pow(a[i], {power}) }}
      }}
    }}"""
    (got,) = run(tmp_path, text, x, as_written=True)
    y = 0.5 if exponent == "s[]" else float(exponent)
    # numpy's `power` takes the root for 1/2, too; C's and Python's do not.
    with np.errstate(all="ignore"):
        want = np.array([np.float64(value) ** y for value in x.astype("float64")])
        want = want.astype(dtype)
    np.testing.assert_allclose(got, want, rtol=4 * float(np.finfo(dtype).eps))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


# Indices and reductions.


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint32", 2**32 - 1),
        ("int64", 2**32 + 1),
        ("int64", -(2**63)),
        ("uint64", 2**63 + 2),
        ("uint64", 2**64 - 1),
        ("uint64", 2),
    ],
)
@pytest.mark.parametrize("index", ["n[0]", "n[i]", "n[0] + 1:{}"])
def test_indices_beyond_32_bits(tmp_path, dtype, value, index):
    at = index.format(dtype)
    text = f"""kernel f(x: float32[4], n: {dtype}[2]) -> (read, written) {{
      buffer read: float32[2]
      buffer written: float32[4]
      serial i in 0 .. 2 {{
        read[i] = x[{at}]
        written[{at}] = 9.0:float32
      }}
    }}"""
    inputs = [np.float32([1, 2, 3, 4]), np.array([value, value], dtype)]
    want = interpret(parse_kernel(text), inputs)
    for expected, got in zip(want, run(tmp_path, text, *inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", [0, 1, 7, 31, 32, 33, 100, 1000])
def test_reductions_of_every_length(tmp_path, size):
    x = np.random.default_rng(size).standard_normal((3, size)).astype("float32")
    k = np.arange(3 * size, dtype="int32").reshape(3, size) * 1000003
    total, product, most, whole = run(
        tmp_path,
        f"""kernel f(a: float32[3, {size}], k: int32[3, {size}]) -> (s, p, m, w) {{
          buffer s: float32[3]
          buffer p: float32[3]
          buffer m: float32[3]
          buffer w: int32[3]
          serial i in 0 .. 3 {{
            p[i] = 1.0:float32
            m[i] = -inf:float32
            serial j in 0 .. {size} {{
              s[i] = s[i] + a[i, j]
              p[i] = p[i] * (1.0:float32 + (a[i, j] * 0.001:float32))
            }}
            serial j2 in 0 .. {size} {{ m[i] = max(m[i], a[i, j2]) }}
            serial j3 in 0 .. {size} {{ w[i] = w[i] - k[i, j3] }}
          }}
        }}""",
        x,
        k,
    )
    np.testing.assert_allclose(total, x.astype("float64").sum(1), atol=1e-4)
    np.testing.assert_allclose(product, (1 + x.astype("float64") * 0.001).prod(1), rtol=1e-4)
    np.testing.assert_array_equal(most, x.max(1, initial=-np.inf))
    np.testing.assert_array_equal(w := whole, -k.sum(1, dtype="int32"), w)


CHOSEN = """kernel f(a: float32[5, 40]) -> (s) {{
  buffer s: float32[{size}]
  serial i in 0 .. 5 {{
    serial j in 0 .. 40 {{
      if ({condition}) {{ s[i] = s[i] + a[i, j] }}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("size", "condition", "is_summed"),
    [(5, "a[i, j] > 4.0:float32", True), (3, "(i < 3) && (a[i, j] > 4.0:float32)", False)],
)
def test_terms_that_a_condition_chooses(tmp_path, size, condition, is_summed):
    # An element that only the condition proves to be there is not touched without it.
    text = CHOSEN.format(size=size, condition=condition)
    a = np.random.default_rng(0).integers(0, 9, (5, 40)).astype("float32")
    (s,) = run(tmp_path, text, a)
    np.testing.assert_array_equal(s, np.where(a > 4, a, 0).sum(1)[:size])
    assert ("float sum = " in printed(prepared(parse_kernel(text))).text) is is_summed


@pytest.mark.parametrize("other", ["0", "i // 2", "p[0]", "p[i]", "4 - i"])
def test_sums_of_two_elements_that_may_be_the_same(tmp_path, other):
    a, b = (np.random.default_rng(n).integers(0, 9, (4, 40)).astype("float32") for n in (0, 1))
    p = np.array([2, 2, 1, 3], "int32")
    (g,) = run(
        tmp_path,
        f"""kernel f(a: float32[4, 40], b: float32[4, 40], p: int32[4]) -> (g) {{
          buffer g: float32[5]
          serial i in 0 .. 4 {{
            serial j in 0 .. 40 {{
              g[i] = g[i] + a[i, j]
              g[{other}] = g[{other}] + b[i, j]
            }}
          }}
        }}""",
        *(a, b, p),
    )
    want = np.append(a.sum(1), 0)
    for i in range(4):
        want[eval(other)] += b[i].sum()
    np.testing.assert_array_equal(g, want)


# Each is in one statement of an iteration, beside sums that go to neighbours: d[j] and d[j + 1].
AT_A_LOCAL = {
    "count": "m[j + k[]] = m[j + k[]] + 1.0:float32",
    "neighbour": "d[j + k[]] = d[j + k[]] + a[j]",
    "fixed but for a local": "d[k[]] = d[k[]] + a[j]",
}


@pytest.mark.parametrize("name", AT_A_LOCAL)
def test_indices_that_read_a_local_of_the_iteration(tmp_path, name):
    text = f"""kernel f(a: float32[600], t: int32[600]) -> (d, m) {{
      buffer d: float32[610]
      buffer m: float32[610]
      serial j in 0 .. 600 {{
        local k: int32[] {{
          k[] = t[j]
          {AT_A_LOCAL[name]}
          d[j] = d[j] + a[j]
          d[j + 1] = d[j + 1] + a[j]
        }}
      }}
    }}"""
    # Eight iterations in a row, a vector of them, meet at one element.
    inputs = [
        np.random.default_rng(0).integers(1, 9, 600).astype("float32"),
        7 - np.arange(600, dtype="int32") % 8,
    ]
    want = interpret(parse_kernel(text), inputs)
    for expected, got in zip(want, run(tmp_path, text, *inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("total", ["s[] + a[j]", "s[] * a[j]", "max(s[], a[j])"])
@pytest.mark.parametrize("term", ["1.0:float32", "a[j]"])
def test_a_histogram_beside_a_total(tmp_path, total, term):
    text = f"""kernel f(a: float32[600], t: int32[600]) -> (h, s) {{
      buffer h: float32[8]
      buffer s: float32[]
      s[] = 1.0:float32
      serial j in 0 .. 600 {{
        h[t[j]] = h[t[j]] + {term}
        s[] = {total}
      }}
    }}"""
    # Iterations side by side add to the same bin.
    inputs = [
        2.0 ** (np.arange(600) % 3 - 1).astype("float32"),
        np.arange(600, dtype="int32") // 75,
    ]
    want = interpret(parse_kernel(text), inputs)
    for expected, got in zip(want, run(tmp_path, text, *inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


# gcc 12 made code that crashed of these. It had not aligned an array on the stack as it took it to
# be: at -O2 and with vectors of 512 bits, and at -O3 and with vectors of 256 bits.
TERM = "(a[n, (c * 4) + {0}, (i * 3) + p, (j * 2) + q] * w[(c * 4) + {0}, p, q, o_1])"
ON_THE_STACK = {
    "a convolution": f"""kernel f(
      a: float32[2, 8, 17, 10], w: float32[8, 3, 3, 20], g: float32[20], h: float32[5, 4]
    ) -> (b) {{
      buffer b: float32[5, 4, 2, 20]
      serial n in 0 .. 2 {{ serial i in 0 .. 5 {{ serial j in 0 .. 4 {{
        local s: float32[20] {{
          parallel o in 0 .. 20 @vector(lanes) {{ s[o] = g[o] }}
          serial p in 0 .. 3 {{ serial q in 0 .. 3 {{ serial c in 0 .. 2 {{
            parallel o_1 in 0 .. 20 @vector(lanes) {{
              s[o_1] = ((((s[o_1] + {TERM.format(0)}) + {TERM.format(1)}) + {TERM.format(2)})
                        + {TERM.format(3)})
            }}
          }} }} }}
          parallel o_2 in 0 .. 20 @vector(lanes) {{ b[i, j, n, o_2] = s[o_2] * h[i, j] }}
        }}
      }} }} }}
    }}""",
    "weights of a resampled image": """kernel f(img: float32[25, 27, 3]) -> (out) {
      buffer wy: float32[8, 24]
      buffer y0: int32[8]
      buffer ny: int32[8]
      buffer tmp: float32[25, 9, 3]
      buffer out: float32[8, 9, 3]
      serial i in 0 .. 25 {
        serial j in 0 .. 9 {
          serial c in 0 .. 3 {
            tmp[i, j, c] = img[i, j, c]
          }
        }
      }
      serial y in 0 .. 8 {
        local centre: float32[] {
          centre[] = (float32(y) + 0.5:float32) * 3.125:float32
          local lo: int32[] {
            lo[] = max(int32((centre[] - 9.375:float32) + 0.5:float32), 0)
            local hi: int32[] {
              hi[] = min(int32((centre[] + 9.375:float32) + 0.5:float32), 25)
              serial k in 0 .. (hi[] - lo[]) {
                wy[y, k] = float32(k + lo[]) - centre[]
              }
              y0[y] = lo[]
              ny[y] = hi[] - lo[]
            }
          }
        }
      }
      serial y_1 in 0 .. 8 {
        serial x in 0 .. 9 {
          serial c_1 in 0 .. 3 {
            local s: float32[] {
              s[] = 0.0:float32
              serial k_1 in 0 .. ny[y_1] {
                s[] = s[] + (wy[y_1, k_1] * tmp[y0[y_1] + k_1, x, c_1])
              }
              out[y_1, x, c_1] = s[]
            }
          }
        }
      }
    }""",
}


@pytest.mark.parametrize("name", ON_THE_STACK)
def test_arrays_on_the_stack_are_aligned_as_vectors_are(tmp_path, name):
    kernel = parse_kernel(ON_THE_STACK[name])
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-2, 3, b.shape).astype(b.dtype) for b in kernel.parameters]
    (want,) = interpret(kernel, inputs)
    for ready, source in ((kernel, printed(kernel)), shipped(kernel, 0)):
        for optimised in ("-O2", "-O3"):
            library = build_together(tmp_path, [source], (optimised,))
            np.testing.assert_array_equal(call(library, ready, source, inputs)[0], want)


JOINED = """kernel f(a: float32[20, 3, 4]) -> (b, c) {{
  buffer b: float32[240]
  buffer c: float32[20, 3, 4]
  serial t in {begin} .. {end} {{
    b[t] = a[{place}]
    c[{place}] = 2.0:float32
  }}
}}"""
PARTS = "t // 12, (t // 4) % 3, t % 4"


@pytest.mark.parametrize(
    ("place", "begin", "end", "want"),
    [
        (PARTS, 0, 240, "a[t]"),
        (PARTS, -3, 250, "a[ms_near_i64("),
        ("t // 12, 1, t % 4", 0, 240, "a[(t / 12) * 12 + 1 * 4 + (t % 4)]"),
        ("t // 12, (t // 4) % 2, t % 4", 0, 240, "a[(t / 12) * 12 + (t % 8)]"),
        ("3, (t // 4) % 3, t % 4", 0, 240, "a[3 * 12 + (t % 12)]"),
        ("t // 15, (t // 4) % 3, t % 4", 0, 240, "a[(t / 15) * 12 + (t % 12)]"),
        ("t // 12, (t // 4) % 3, (t + 1) % 4", 0, 240, "a[(t / 12) * 12 + ((t / 4) % 3) * 4"),
        ("1, t // 3, t % 3", 0, 9, "a[1 * 12 + (t / 3) * 4 + (t % 3)]"),
        ("1, t // 4, (t + 1) % 4", 0, 12, "a[1 * 12 + (t / 4) * 4 + ((t + 1) % 4)]"),
    ],
    ids=[
        *("all", "outside", "one more", "other rows", "two axes", "other parts", "another number"),
        *("parts of shorter rows", "the row of another number"),
    ],
)
def test_indices_that_are_the_parts_of_a_number_are_that_number(tmp_path, place, begin, end, want):
    kernel = parse_kernel(JOINED.format(place=place, begin=begin, end=end))
    source = printed(kernel)
    assert want in source.text
    a = np.random.default_rng(0).random((20, 3, 4), "float32")
    got = call(build_together(tmp_path, [source]), kernel, source, [a])
    for x, y in zip(got, interpret(kernel, [a]), strict=True):
        np.testing.assert_array_equal(x, y)


# Elements of a row of m: neighbours, and one that may be any of them.
AMONG_NEIGHBOURS = {
    "read between stores": "m[i, 0] = 2.0:float32 x[i] = m[i, n[0]] m[i, 1] = 3.0:float32",
    "stored between stores": "m[i, 0] = 2.0:float32 m[i, n[0]] = x[i] m[i, 1] = 3.0:float32",
    "stored between loads": "x[i] = m[i, 0] m[i, n[0]] = 2.0:float32 x[i] = x[i] + m[i, 1]",
}


@pytest.mark.parametrize("name", AMONG_NEIGHBOURS)
@pytest.mark.parametrize("size", [12, 64])
def test_an_element_that_may_be_one_of_several_neighbours(tmp_path, size, name):
    kernel = parse_kernel(f"""kernel f(
      m: float32[{size}, 2], x: float32[{size}], n: int32[1]
    ) -> (m, x) {{
      parallel i in 0 .. {size} {{ {AMONG_NEIGHBOURS[name]} }}
    }}""")
    ready = prepared(kernel)
    source = printed(ready)
    library = build_together(tmp_path, [source], ("-O3",))
    m, x = (np.arange(5, 5 + n, dtype="float32") for n in (2 * size, size))
    for which in (0, 1):
        inputs = [m.reshape(size, 2), x, np.array([which], "int32")]
        want = interpret(kernel, inputs)
        for expected, got in zip(want, call(library, ready, source, inputs), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("columns", [2, 3, 4, 8])
@pytest.mark.parametrize(
    "first",
    [
        "y[j + 1, k] = p[k]",
        "serial l in 0 .. 7 { y[j + 1, k] = p[l] }",
        "serial l in 0 .. 7 { y[j + 1, k] = y[j + 1, k] + p[l] }",
    ],
)
def test_rows_that_the_next_iteration_reads_are_stored_before(tmp_path, columns, first):
    kernel = parse_kernel(f"""kernel rows(p: float64[9]) -> (y) {{
      buffer y: float64[13, {2 * columns}]
      serial j in 0 .. 12 {{
        serial k in 0 .. {columns} {{
          {first}
          y[j, k] = y[j, k] + 1.0:float64
        }}
      }}
    }}""")
    ready, source = shipped(kernel, 0)
    inputs = [np.arange(9.0)]
    library = build_together(tmp_path, [source], ("-O3",))
    for got, want in zip(
        call(library, ready, source, inputs), interpret(kernel, inputs), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "body",
    [
        "serial k in 0 .. 4 { z[j, 1] = p[k] z[j + 1, k + 1] = p[1] }",
        "serial k in 0 .. 3 { y[j + 2, 2 - k] = z[j + 1, k] + 1.0:float64 z[j + 2, 1] = p[0] }",
        "y[j + 1, 1] = p[1] y[j, 1] = p[0] y[j + 1, 0] = y[j + 1, 0] + p[2]",
        "y[j, 1] = y[j + 1, 1] + 1.0:float64 y[j + 2, 0] = y[j + 2, 0] + p[2] "
        "y[j + 1, 0] = y[j + 1, 0] + p[2]",
    ],
    ids=["stored again", "loaded before", "stored again by name", "loaded before by name"],
)
@pytest.mark.parametrize("width", [2, 3, 8])
def test_rows_that_the_next_iteration_touches_keep_their_order(tmp_path, body, width):
    body = body if width > 3 else body.replace("k + 1]", "k]").replace("2 - k", f"{width - 1} - k")
    for number in (3, 4):
        body = body.replace(f"0 .. {number}", f"0 .. {min(number, width)}")
    kernel = parse_kernel(f"""kernel rows(p: float64[9]) -> (y, z) {{
      buffer y: float64[20, {width}]
      buffer z: float64[20, {width}]
      serial j in 0 .. 16 {{ {body} }}
    }}""")
    ready, source = shipped(kernel, 0)
    inputs = [np.arange(1.0, 10.0)]
    library = build_together(tmp_path, [source], ("-O3",))
    for got, want in zip(
        call(library, ready, source, inputs), interpret(kernel, inputs), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_an_index_without_its_variable_is_printed_as_it_is():
    kernel = parse_kernel("""kernel first(p: float64[9]) -> (y) {
      buffer y: float64[20]
      serial j in 0 .. 16 {
        y[j - j] = p[1]
        y[j - j] = y[j - j] + 1.0:float64
      }
    }""")
    assert "y[" in printed(kernel).text


def test_a_maximum_finds_nan_anywhere(tmp_path):
    text = """kernel f(a: float32[2, 100]) -> (m) {
      buffer m: float32[2]
      serial i in 0 .. 2 { serial j in 0 .. 100 { m[i] = max(m[i], a[i, j]) } }
    }"""
    for place in (0, 40, 99):
        x = np.ones((2, 100), "float32")
        x[0, place] = np.nan
        np.testing.assert_array_equal(run(tmp_path, text, x)[0], [np.nan, 1])


def test_a_reduction_whose_loop_does_not_run_touches_nothing(tmp_path):
    # s[4 - i] is there only where the inner loop has iterations.
    (s,) = run(
        tmp_path,
        """kernel f(a: float32[10]) -> (s) {
          buffer s: float32[5]
          serial i in 0 .. 10 { serial j in 0 .. (5 - i) { s[4 - i] = s[4 - i] + a[j] } }
        }""",
        np.ones(10, "float32"),
    )
    np.testing.assert_array_equal(s, [1, 2, 3, 4, 5])


# Memory.


def test_a_parameter_that_is_written_is_a_copy_and_may_be_returned_twice(tmp_path):
    x = np.arange(6, dtype="float32")
    first, second, third = run(
        tmp_path,
        """kernel f(a: float32[6], b: float32[6]) -> (a, b, a) {
          serial i in 1 .. 6 { a[i] = a[i] + a[i - 1] }
        }""",
        x,
        x,
    )
    np.testing.assert_array_equal(first, np.cumsum(x))
    np.testing.assert_array_equal(second, x)
    np.testing.assert_array_equal(third, first)


def test_large_temporaries_and_locals_start_at_zero_in_blocks_too(tmp_path, monkeypatch):
    text = """kernel f(a: float32[8, 4000]) -> (c) {
      buffer c: float32[8, 4000]
      buffer t: float32[8, 4000]
      parallel i in 0 .. 8 {
        local u: float32[4000] {
          serial j in 0 .. 4000 {
            if (a[i, j] > 0.0:float32) { u[j] = a[i, j]  t[i, j] = 1.0:float32 }
          }
          serial j2 in 0 .. 4000 { c[i, j2] = u[3999 - j2] + t[i, j2] }
        }
      }
    }"""
    x = np.random.default_rng(0).standard_normal((8, 4000)).astype("float32")
    expected = np.where(x > 0, x, 0)[:, ::-1] + (x > 0)
    np.testing.assert_array_equal(run(tmp_path, text, x)[0], expected)
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-12)
    assert "aligned_alloc" in printed(prepared(parse_kernel(text))).text
    np.testing.assert_array_equal(run(tmp_path, text, x)[0], expected)


def test_a_large_local_that_nothing_is_stored_to_is_zero(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-12)
    text = """kernel f(p: int32[8]) -> (c) {
      buffer c: float32[8]
      parallel i in 0 .. 8 { local u: float32[4000] { c[i] = u[p[i]] + 2.0:float32 } }
    }"""
    (c,) = run(tmp_path, text, np.arange(8, dtype="int32"))
    np.testing.assert_array_equal(c, np.full(8, 2))


def test_empty_arrays(tmp_path):
    (c,) = run(
        tmp_path,
        """kernel f(a: float32[0, 3], k: int32[3]) -> (c) {
          buffer c: float32[3]
          serial i in 0 .. 3 { c[i] = 1.0:float32 + a[k[i], i] }
        }""",
        np.empty((0, 3), "float32"),
        np.arange(3, dtype="int32"),
    )
    np.testing.assert_array_equal(c, [1, 1, 1])


# Bounds.

INDIRECT = """kernel f(a: float32[4], k: int32[6], q: int64[6]) -> (c, d) {
  buffer c: float32[6]
  buffer d: float32[4]
  serial i in 0 .. 6 {
    c[i] = a[k[i]]
    d[q[i]] = a[0] + float32(i)
  }
}"""


def test_indices_out_of_range_clamp_when_read_and_drop_when_written(tmp_path):
    a = np.array([1, 2, 3, 4], "float32")
    k = np.array([-(2**31), -1, 0, 3, 4, 2**31 - 1], "int32")
    q = np.array([-(2**63), -1, 0, 3, 4, 2**63 - 1], "int64")
    c, d = run(tmp_path, INDIRECT, a, k, q)
    np.testing.assert_array_equal(c, [1, 1, 1, 4, 4, 4])
    np.testing.assert_array_equal(d, [3, 0, 0, 4])


SAMPLES = """kernel f(x: float32[9], a: float32[5]) -> (y, z) {
  buffer y: float32[9]
  buffer z: float32[9]
  serial i in 0 .. 9 {
    local place: float32[] {
      place[] = min(max(x[i], 0.0:float32), 4.0:float32)
      local left: int32[] {
        left[] = int32(floor(place[]))
        local right: int32[] {
          right[] = min(left[] + 1, 4)
          y[i] = a[left[]] + (10.0:float32 * a[right[]])
        }
      }
    }
    local moved: float32[] {
      moved[] = max(min(x[i], 3.0:float32), 2.0:float32)
      local at: int32[] {
        if (x[i] > -1.0:float32) {
          at[] = int32(moved[]) + 1
        }
        z[i] = a[at[] - 1]
      }
    }
  }
}"""


def test_what_a_local_holds_says_that_indices_are_in_range(tmp_path):
    x = np.array([-np.inf, -2, -0.5, 0.5, 3.5, 4, 9, np.inf, np.nan], "float32")
    a = np.arange(1, 6, dtype="float32")
    y, z = run(tmp_path, SAMPLES, x, a)
    left = np.array([0, 0, 0, 0, 3, 4, 4, 4, 0])
    np.testing.assert_array_equal(y, a[left] + 10 * a[np.minimum(left + 1, 4)])
    np.testing.assert_array_equal(z, a[[0, 0, 2, 2, 3, 3, 3, 3, 0]])
    text = printed(prepared(parse_kernel(SAMPLES))).text
    assert re.search(r"ms_picked_f32_\d+\(&a\[0\], left,", text)
    assert re.search(r"ms_picked_f32_\d+\(&a\[0\], right,", text)
    # It is 0 where nothing is stored.
    assert re.search(r"ms_picked_f32_\d+\(&a\[0\], ms_clamp_i32_\d+\(.*at - ", text)


def test_a_bound_that_float32_cannot_hold_bounds_nothing(tmp_path):
    text = """kernel f(x: float32[4]) -> (y) {
  buffer y: int32[4]
  serial i in 0 .. 4 {
    y[i] = int32(min(max(x[i], -1e300:float32), 1e300:float32))
  }
}"""
    (y,) = run(tmp_path, text, np.array([1.5, 3e9, -3e9, np.nan], "float32"))
    np.testing.assert_array_equal(y, [1, 2**31 - 1, -(2**31), 0])


PICKS = """kernel f(a: float32[{n}, 8, 256], r: int32[40], c: int32[40], v: uint8[40]) -> (y) {{
  buffer y: float32[40]
  parallel i in 0 .. 40 {{
    y[i] = a[r[i], c[i], v[i]]
  }}
}}"""


def test_offsets_of_picked_elements_are_of_32_bits_where_these_are_enough(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((9, 8, 256), np.float32)
    r, c = (rng.integers(-2, 11, 40, np.int32) for _ in "rc")
    r[:2] = -(2**31), 2**31 - 1
    v = rng.integers(0, 256, 40).astype(np.uint8)
    (y,) = run(tmp_path, PICKS.format(n=9), a, r, c, v)
    np.testing.assert_array_equal(y, a[np.clip(r, 0, 8), np.clip(c, 0, 7), v])
    near = printed(prepared(parse_kernel(PICKS.format(n=2**20 - 1)))).text
    offsets = (
        r"ms_picked_f32_\d+\(&a\[0\], ms_clamp_i32_\d+\(.*&r\[i\], .* \+ 1048575\) \* 2048 \+ "
    )
    assert re.search(offsets, near)
    far = printed(prepared(parse_kernel(PICKS.format(n=2**20)))).text
    assert "ms_near_i64((int64_t)r[(i + ms_lane)], 1048576) * 2048 + ms_near_i64(" in far


SHIFTED = """kernel f(a: float32[9, 40], d: int32[9], e: int32[40]) -> (y) {
  buffer y: float32[9, 40]
  parallel i in 0 .. 9 {
    parallel j in 0 .. 40 {
      y[i, j] = a[max(min(i + d[i], 8), 0), max(min(j + e[j], 39), 0)]
    }
  }
}"""


@pytest.mark.parametrize("shift", [(0, -3), (2, 38), (-(2**31), 2**31 - 1), (2**31 - 4, -40)])
def test_vectors_clamp_distant_neighbours_in_32_bits(tmp_path, shift):
    a = np.random.default_rng(0).standard_normal((9, 40), np.float32)
    d, e = (np.full(n, by, np.int32) for n, by in zip(a.shape, shift, strict=True))
    e[::7] = 3
    # The sums wrap, as sums of int32 do.
    rows, columns = (
        np.arange(n, dtype=np.int32) + by for n, by in zip(a.shape, (d, e), strict=True)
    )
    (y,) = run(tmp_path, SHIFTED, a, d, e)
    expected = a[np.clip(rows, 0, 8)[:, None], np.clip(columns, 0, 39)]
    np.testing.assert_array_equal(y, expected)
    text = printed(prepared(parse_kernel(SHIFTED))).text
    assert re.search(r"ms_picked_f32_\d+\(.*ms_max_i32_\d+\(ms_min_i32_\d+\(.*int32_t\)j", text)


def test_vectors_clamp_what_64_bits_alone_hold(tmp_path):
    text = """kernel f(a: float32[40], d: uint64[2], e: int64[2]) -> (y, z) {
  buffer y: float32[40]
  buffer z: float32[40]
  parallel j in 0 .. 40 {
    y[j] = a[max(uint64(j), d[1])]
    z[j] = a[max(int64(j) - 5:int64, e[0])]
  }
}"""
    a = np.arange(40, dtype=np.float32)
    d, e = np.array([0, 2**63 + 5], np.uint64), np.array([2**40, 0], np.int64)
    y, z = run(tmp_path, text, a, d, e)
    np.testing.assert_array_equal((y, z), np.full((2, 40), 39))


ROWS_OF_DATA = """kernel f(first: int32[8], value: float32[5], x: float32[5]) -> (y, z) {
  buffer y: float32[7]
  buffer z: float32[5]
  serial i in 0 .. 7 {
    serial k in first[i] .. first[i + 1] {
      y[i] = y[i] + (value[k] * x[k - 1])
      z[k] = float32(i + 1)
    }
  }
}"""


def test_rows_given_by_data_may_leave_their_array(tmp_path):
    ends = np.array([0, 3, 5, 7, -2, 2, 9, -(2**31)], "int32")
    value, x = np.arange(1, 6, dtype="float32"), np.arange(5, dtype="float32") + 0.5
    y, z = run(tmp_path, ROWS_OF_DATA, ends, value, x)
    want_y, want_z = np.zeros(7), np.zeros(5)
    for i in range(7):
        for k in range(ends[i], ends[i + 1]):
            want_y[i] += value[np.clip(k, 0, 4)] * x[np.clip(k - 1, 0, 4)]
            if 0 <= k < 5:
                want_z[k] = i + 1
    np.testing.assert_array_equal(y, want_y)
    np.testing.assert_array_equal(z, want_z)
    text = printed(prepared(parse_kernel(ROWS_OF_DATA))).text
    assert "ms_near_i64(k_1, 5)" in text
    assert "_i64(k, 5)" not in text


def test_an_index_of_32_bits_is_clamped_in_an_array_that_needs_more():
    text = """kernel f(at: int32[4], x: int8[4294967296]) -> (y) {
  buffer y: int8[4]
  parallel i in 0 .. 4 {
    y[i] = x[at[i]]
  }
}"""
    assert "x[ms_near_i64((int64_t)at[i], 4294967296)]" in printed(parse_kernel(text)).text


def test_a_clamped_row_may_begin_beyond_32_bits():
    text = """kernel f(at: int32[4], x: int8[65600, 32800]) -> (y) {
  buffer y: int8[4]
  parallel i in 0 .. 4 {
    y[i] = x[at[i], at[i]]
  }
}"""
    row, column = (f"ms_near_i64((int64_t)at[i], {size})" for size in (65600, 32800))
    assert f"x[{row} * 32800 + {column}]" in printed(parse_kernel(text)).text


def test_rows_given_by_data_are_checked_on_request(tmp_path):
    kernel = prepared(parse_kernel(ROWS_OF_DATA))
    source = printed(kernel, check_bounds=True)
    library = build_together(tmp_path, [source])
    values = [np.ones(5, "float32")] * 2
    for ends, is_good in (([1, 1, 2, 3, 3, 4, 5, 5], True), ([1, 1, 2, 3, 3, 4, 5, 6], False)):
        inputs = [np.array(ends, "int32"), *values]
        code, _ = call_for_code(library, kernel, source, inputs)
        assert (code == 0) is is_good


def test_indices_are_checked_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-12)
    kernel = prepared(parse_kernel(INDIRECT))
    source = printed(kernel, check_bounds=True)
    library = build_together(tmp_path, [source])
    message = library[f"{source.symbol}Message"]
    message.restype = ctypes.c_char_p
    a = np.ones(4, "float32")
    good = np.array([0, 1, 2, 3, 3, 0])
    bad = np.array([0, 1, 2, 3, 3, 9])
    for k, q, text in (
        (good, good, None),
        (bad, good, b"index 0 of 'a' is outside of 0 .. 3"),
        (good, bad, b"index 0 of 'd' is outside of 0 .. 3"),
    ):
        inputs = [a, k.astype("int32"), q.astype("int64")]
        code, _ = call_for_code(library, kernel, source, inputs)
        first_line = text and message(code).splitlines()[0]
        assert (first_line, code == 0) == (text, text is None)
    assert message(-1) is None
    assert message(99) is None


# What is only found by running: order-bound kernels against numpy.


def test_lu_cholesky_and_a_product_are_numpys(tmp_path):
    generator = np.random.default_rng(3)
    a = generator.standard_normal((40, 40)).astype("float32")
    spd = (a @ a.T + 40 * np.eye(40)).astype("float32")
    (lu,) = run(
        tmp_path,
        """kernel lu(b: float32[40, 40]) -> (b) {
          serial k in 0 .. 40 {
            serial i in (k + 1) .. 40 {
              b[i, k] = b[i, k] / b[k, k]
              serial j in (k + 1) .. 40 { b[i, j] = b[i, j] - (b[i, k] * b[k, j]) }
            }
          }
        }""",
        spd,
    )
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(40)) @ np.triu(lu), spd, rtol=1e-4)
    (root,) = run(
        tmp_path,
        """kernel cholesky(a: float32[40, 40]) -> (b) {
          buffer b: float32[40, 40]
          serial j in 0 .. 40 {
            serial i in j .. 40 {
              b[i, j] = a[i, j]
              serial k in 0 .. j { b[i, j] = b[i, j] - (b[i, k] * b[j, k]) }
              if (i == j) { b[j, j] = sqrt(b[j, j]) } else { b[i, j] = b[i, j] / b[j, j] }
            }
          }
        }""",
        spd,
    )
    np.testing.assert_allclose(root, np.linalg.cholesky(spd), rtol=1e-4, atol=1e-5)
    (product,) = run(
        tmp_path,
        """kernel matmul(a: float32[40, 40], b: float32[40, 40]) -> (c) {
          buffer c: float32[40, 40]
          serial i in 0 .. 40 {
            serial j in 0 .. 40 {
              c[i, j] = 0.0:float32
              serial k in 0 .. 40 { c[i, j] = c[i, j] + (a[i, k] * b[k, j]) }
            }
          }
        }""",
        a,
        spd,
    )
    np.testing.assert_allclose(product, a @ spd, rtol=1e-4, atol=1e-3)


def test_names_of_c_and_its_headers_are_not_taken(tmp_path):
    kernel = """kernel f(unix: float32[9000], free: float32[9000], M_PI: int32[1]) -> (double) {
      buffer double: float32[9000]
      parallel expf in 0 .. 9000 {
        double[expf] = atan(unix[expf]) + (free[expf] * float32(M_PI[0]))
      }
    }"""
    a = np.linspace(-1, 1, 9000, dtype="float32")
    (got,) = run(tmp_path, kernel, a, a, np.int32([2]))
    np.testing.assert_allclose(got, np.arctan(a) + 2 * a, 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("condition", "ends_early"),
    [
        ("(t[] < 4) && (a[t[]] > 1)", True),  # as a while
        ("a[i] > t[]", False),  # a later iteration may find more
        ("a[2] > 1", False),  # the compiler sees that it stays as it is
    ],
)
def test_a_loop_ends_where_its_condition_stays_false(
    tmp_path, condition: str, ends_early: bool
) -> None:
    written = parse_kernel(
        f"""kernel walk(a: int32[6]) -> (t, steps) {{
          buffer t: int32[]
          buffer steps: int32[]
          serial i in 0 .. 6 {{
            if ({condition}) {{
              t[] = t[] + 1
              steps[] = (steps[] * 10) + i
            }}
          }}
        }}"""
    )
    kernel = prepared(written)
    source = printed(kernel, 0)
    assert ("break;" in source.text) == ends_early
    values = np.int32([2, 0, 3, 2, 0, 9])
    library = build_together(tmp_path, [source])
    got = call(library, kernel, source, [values])
    assert [part.tolist() for part in got] == [
        part.tolist() for part in interpret(written, [values])
    ]


POWERS = (1, 2, 8, 64)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_powers_of_two_divide_as_in_numpy(tmp_path: Path, dtype: str) -> None:
    info = np.iinfo(dtype)
    near = [0, 1, 2, 7, 8, 9, 63, 64, 65, -1, -2, -7, -8, -9, -63, -64, -65]
    values = {value for value in near if info.min <= value} | {info.min, info.min + 1, info.max}
    a = np.array(sorted(values), dtype)
    kernels = [
        parse_kernel(
            f"kernel f(a: {dtype}[{a.size}]) -> (b) {{ buffer b: {dtype}[{a.size}]"
            f" serial i in 0 .. {a.size} {{ b[i] = a[i] {op} {power}:{dtype} }} }}"
        )
        for op in ("//", "%")
        for power in POWERS
    ]
    ready = [prepared(kernel) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(ready)]
    library = build_together(tmp_path, sources)
    got = [call(library, *pair, [a])[0] for pair in zip(ready, sources, strict=True)]
    expected = [
        f(a, a.dtype.type(power)) for f in (np.floor_divide, np.remainder) for power in POWERS
    ]
    np.testing.assert_array_equal(got, expected)
