"""Loops as explicit vector code: by text, and by what it computes on three kinds of processors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from loop_ir import PASSES_TO_C, Kernel, as_dtype, interpret, kernel_text, parse_kernel, run_passes
from loop_native import build_together, call, printed

from msops._base import processor

LOOP = """kernel loop(a: {dtype}[300], b: {dtype}[300], at: int32[300], n: int32[1]) -> (c, d) {{
  buffer c: {dtype}[300]
  buffer d: {dtype}[300]
  {loop}
}}"""
PARTS = {
    "copy": "parallel i in 0 .. {n} {{ c[i] = a[i] }}",
    "in place": "parallel i in 0 .. {n} {{ c[i] = c[i] + (a[i] * b[i]) }}",
    "back": "parallel i in 0 .. {n} {{ c[i] = a[i] + b[299 - i] }}",
    "to the back": """parallel i in 0 .. {n} {{
      c[299 - i] = c[299 - i] + (a[i] * b[299 - i])
      d[i] = c[299 - i] - a[i]
    }}""",
    "turned": "parallel i in 0 .. {n} {{ c[299 - i] = a[i] }}",
    "some to the back": """parallel i in 0 .. {n} {{
      if (a[i] > {one}) {{ c[299 - i] = a[i] - b[280 - i] }}
    }}""",
    "of data to the back": "parallel i in 0 .. n[0] {{ c[42 - i] = a[42 - i] - b[i] }}",
    "steps": "parallel i in 0 .. {n} {{ c[i] = (a[2 * i] + a[(3 * i) + 1]) - b[(4 * i) + 2] }}",
    "far": "parallel i in 0 .. {n} {{ c[9 * i] = a[9 * i] + b[7 * i] }}",
    "pairs": "parallel i in 0 .. {n} {{ c[i] = (a[2 * i] * b[(2 * i) + 1]) - a[(2 * i) + 1] }}",
    "triples": "parallel i in 0 .. {n} {{ c[i] = (a[5 + (3 * i)] + a[3 * i]) - a[(3 * i) + 2] }}",
    "in turn": """parallel i in 0 .. {n} {{
      c[(3 * i) + 1] = a[i]
      d[i] = c[3 * i]
      c[3 * i] = b[i] - c[(3 * i) + 1]
      c[(3 * i) + 2] = c[3 * i] + b[i]
    }}""",
    "in turn, twice, within variables": """parallel i in 0 .. {n} {{
      local p: {dtype}[] {{
        p[] = a[i] - b[i]
        c[(2 * i) + 1] = p[]
        local q: {dtype}[] {{
          q[] = p[] * b[2 * i]
          c[2 * i] = q[] - a[i]
          d[i] = c[2 * i] + q[]
        }}
        c[2 * i] = c[2 * i] + p[]
        if (p[] > {one}) {{ local t: {dtype}[] {{ t[] = p[] - c[2 * i] d[i] = d[i] - t[] }} }}
      }}
    }}""",
    "not in turn": """parallel i in 0 .. {n} {{
      c[2 * i] = a[i] + b[i]
      d[i] = c[(2 * i) + at[4]]
      c[(2 * i) + 1] = a[i]
    }}""",
    "twice in turn": """parallel i in 0 .. {n} {{
      c[2 * i] = a[i] + b[i]
      c[(2 * i) + 1] = b[i]
      c[2 * i] = c[2 * i] - c[(2 * i) + 1]
      if (b[i] > {one}) {{ c[(2 * i) + 1] = a[i] }}
    }}""",
    "exchanged": """parallel i in 0 .. {n} {{
      local p: {dtype}[] {{ local q: {dtype}[] {{
        p[] = a[i]
        q[] = b[i]
        if (q[] < p[]) {{ local t: {dtype}[] {{ t[] = p[] p[] = q[] q[] = t[] }} }}
        if (p[] > {one}) {{ p[] = {one} }} else {{ if (q[] > p[]) {{ q[] = p[] }} }}
        if (i > 2) {{ if (p[] > q[]) {{ local u: {dtype}[] {{ u[] = q[] q[] = p[] p[] = u[] }} }} }}
        c[i] = p[]
        d[i] = q[]
      }} }}
    }}""",
    "pairs back": "parallel i in 0 .. {n} {{ c[i] = a[299 - (2 * i)] - a[298 - (2 * i)] }}",
    "kept": """parallel i in 0 .. {n} {{
      c[i] = c[i] + a[i]
      c[i] = c[i] - b[i]
      if (c[i] > {one}) {{ c[i] = a[i + 1] }}
      d[i] = c[i] + c[299 - i]
    }}""",
    "clamped": "parallel i in 0 .. {n} {{ c[i] = a[i - 3] + b[i + 299] }}",
    "dropped": "parallel i in 0 .. {n} {{ c[(i * 50) - 40] = a[i] + b[i] }}",
    "picked": "parallel i in 0 .. {n} {{ c[i] = a[at[i]] + b[at[i] - 2] }}",
    "scattered": "parallel i in 0 .. {n} {{ if (at[i] == i) {{ c[at[i]] = a[i] + b[i] }} }}",
    "guarded": "parallel i in 0 .. {n} {{ c[i] = (i > 2) ? a[i - 3] : b[i + 1] }}",
    "branches": """parallel i in 0 .. {n} {{
      if (a[i] > b[i]) {{ c[i] = a[i] }} else {{ if (b[i] > {one}) {{ d[i] = b[i] - a[i] }} }}
    }}""",
    "variables": """parallel i in 0 .. {n} {{
      local t: {dtype}[] {{ local is_more: bool[] {{
        is_more[] = (a[i] > b[i]) && (at[i] < 9)
        t[] = a[i]
        if (!(is_more[])) {{ t[] = t[] + b[i] }}
        c[i] = (is_more[] || (t[] > {one})) ? t[] : -(t[])
      }} }}
    }}""",
    "any": """local s: bool[] {{
      s[] = false
      reduction i in 0 .. {n} {{ s[] = s[] || (a[i] > (b[i] + {one})) }}
      c[1] = {dtype}(s[])
    }}""",
    "all": """local s: bool[] {{
      s[] = true
      reduction i in 0 .. {n} {{ s[] = s[] && (a[i] > (b[i] - {one})) }}
      c[1] = {dtype}(s[])
    }}""",
    "some of all": """local s: bool[] {{
      s[] = true
      reduction i in 0 .. {n} {{ if (b[i] > a[i]) {{ s[] = s[] && (a[i] > (b[i] - {one})) }} }}
      c[1] = {dtype}(s[])
    }}""",
    "casts": "parallel i in 0 .. {n} {{ c[i] = {dtype}(int32(a[i])) + {dtype}(i % 4) }}",
    "extremes": "parallel i in 0 .. {n} {{ c[i] = max(min(a[i], b[i]), {one}) - abs(a[i]) }}",
    "rows of a triangle": """serial k in 0 .. {n} {{ parallel i in 0 .. k {{
      c[i] = (c[i] + (a[i] * b[k])) - ((d[i] * a[k + i]) + (b[i] * b[k + i]))
      d[i] = ((a[i] - (b[k] * b[i])) + (a[i] * b[k])) - (c[i] + (a[k] * b[i + k]))
    }} }}""",
    "length of data": "parallel i in 0 .. n[0] {{ c[i] = a[i] - b[i] }}",
    "sum": "reduction i in 0 .. {n} {{ c[0] = c[0] + (a[i] * b[i]) }}",
    "sums": """reduction i in 0 .. {n} {{
      c[0] = c[0] - ((a[i] * b[i]) + a[i])
      d[0] = d[0] + b[i]
    }}""",
    "a sum by names like the printer's": """parallel i_1 in 0 .. 2 {{
      local on: {dtype}[] {{ local on_of_8: {dtype}[] {{
        reduction i in 0 .. {n} {{
          if (a[i + i_1] > {one}) {{ on[] = on[] + b[i] on_of_8[] = on_of_8[] + a[i_1] }}
        }}
        c[i_1] = on[] - on_of_8[]
      }} }}
    }}""",
    "sum of data": "reduction i in 1 .. n[0] {{ c[0] = c[0] + (a[at[i]] * b[i]) }}",
    "sum beside elements": """reduction i in 0 .. {n} {{
      d[i + 1] = d[i + 1] + (a[i] * b[i])
      c[0] = c[0] + d[i + 1]
    }}""",
    "some": "reduction i in 0 .. {n} {{ if (a[i] > {one}) {{ c[0] = c[0] + b[i] }} }}",
    "least": "reduction i in 0 .. {n} {{ c[0] = min(c[0], a[i] - b[i]) }}",
    "greatest": "reduction i in 0 .. {n} {{ c[0] = max(c[0], a[i] - b[i]) }}",
    "product": "reduction i in 0 .. {n} {{ c[0] = c[0] * a[i] }}",
}
FLOATS = {
    "root": "parallel i in 0 .. {n} {{ c[i] = pow(a[i] * a[i], 0.5:{dtype}) + b[i] }}",
    "cube": "parallel i in 0 .. {n} {{ c[i] = pow(a[i], 3.0:{dtype}) - b[i] }}",
    "reciprocal": "parallel i in 0 .. {n} {{ c[i] = pow(a[i], -1.0:{dtype}) - b[i] }}",
    "powers": "parallel i in 0 .. {n} {{ c[i] = floor(pow(abs(a[i]) + {one}, b[i])) }}",
    "remainders": "parallel i in 0 .. {n} {{ c[i] = (a[i] // b[i]) - (a[i] % b[i]) }}",
    "signs": "parallel i in 0 .. {n} {{ c[i] = sign(a[i] - b[i]) + abs(b[i]) }}",
    "tests": """parallel i in 0 .. {n} {{
      c[i] = ((isnan(a[i]) || isinf(a[i])) || !(isfinite(b[i]))) ? b[i] : sign(a[i])
    }}""",
}
LENGTHS = [1, 4, 7, 16, 21, 32, 70]
INTEGERS = {
    "wraps": "parallel i in 0 .. {n} {{ c[i] = (a[i] * b[i]) - (c[i] + a[i]) }}",
    "bits": "parallel i in 0 .. {n} {{ c[i] = (a[i] & b[i]) ^ ((a[i] | b[i]) << (b[i] & {one})) }}",
    "shift": "parallel i in 0 .. {n} {{ c[i] = (a[i] >> b[i]) + (a[i] << b[i]) }}",
    "divided": "parallel i in 0 .. {n} {{ c[i] = (a[i] // b[i]) + (a[i] % b[i]) }}",
    "functions": """parallel i in 0 .. {n} {{
      c[i] = (sign(a[i]) + abs(b[i])) ^ popcount(a[i] - b[i])
    }}""",
    "divided by numbers": """parallel i in 0 .. {n} {{
      c[i] = ((a[i] // 7:{dtype}) * 3:{dtype}) ^ (a[i] % 7:{dtype})
      d[i] = (a[i] // 4:{dtype}) - (a[i] % 8:{dtype})
    }}""",
    "all bits": "reduction i in 0 .. {n} {{ c[0] = c[0] | a[i] }}",
    "odd bits": "reduction i in 0 .. {n} {{ c[0] = c[0] ^ a[i] }}",
}


@pytest.fixture(params=[16, 32, 64])
def vector_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a vector of three kinds of processors."""
    if request.param > processor.vector_bytes():
        pytest.skip("this processor has no such vectors")
    monkeypatch.setattr(processor, "vector_bytes", lambda: request.param)
    return int(request.param)


def loop(part: str, dtype: str, n: int) -> Kernel:
    one = f"1{'.0' if 'float' in dtype else ''}:{dtype}"
    return parse_kernel(LOOP.format(dtype=dtype, loop=part.format(n=n, dtype=dtype, one=one)))


@pytest.mark.parametrize(
    "dtype",
    [
        *("float32", "float16", "int32"),
        *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "int64", "uint8")),
    ],
)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_vectors_compute_what_the_interpreter_does(
    tmp_path: Path, dtype: str, half: int, vector_bytes: int
) -> None:
    parts = PARTS | (FLOATS if "float" in dtype else INTEGERS)
    # Of each part every other length, of its neighbours in the table the others.
    table = [(part, n) for part in parts.values() for n in LENGTHS]
    kernels = [loop(part, dtype, n) for part, n in table[half::2]]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    library = build_together(tmp_path, sources)
    random = np.random.default_rng(0)
    least = 0 if dtype == "uint8" else -2
    a, b = (random.integers(least, 3, 300).astype(dtype) for _ in range(2))
    if "float" in dtype:
        # A product of nothing but powers of 2 is exact.
        a = np.where(a == 0, 1, a).astype(dtype)
    at = np.where(random.random(300) < 0.5, np.arange(300), random.integers(-3, 305, 300))
    inputs = [a, b, at.astype("int32"), np.int32([43])]
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        for got, want in zip(
            call(library, after, source, inputs), interpret(kernel, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))


NARROW = ("int8", "uint8", "int16", "uint16")
CASTS = [
    *((source, dtype) for source in NARROW for dtype in ("float32", "int32", "float16")),
    *((source, dtype) for source in ("float32", "float16", "bfloat16") for dtype in NARROW),
    *(("float64", dtype) for dtype in (*NARROW, "int32")),
]


def test_casts_are_those_of_the_interpreter(tmp_path: Path, vector_bytes: int) -> None:
    """Between dtypes of all widths, also under a mask, of numbers in and out of range, and NaN."""
    kernels = [
        parse_kernel(f"""kernel casts(a: {source}[{n}]) -> (c) {{
          buffer c: {dtype}[{n}]
          parallel i in 0 .. {n} {{ if (i != 2) {{ c[i] = {dtype}(a[i]) }} }}
        }}""")
        for source, dtype in CASTS
        for n in (21, 71)
    ]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    assert all("ms_vector" in source.text for source in sources)
    library = build_together(tmp_path, sources)
    special = [np.nan, np.inf, -np.inf, -0.0, 0.9, -0.9, 3e9, -3e9, 65535.9, 1e30]
    numbers = [*special, *range(-130, 260, 13), *range(-33000, 66000, 3300)]
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        (parameter,) = kernel.parameters
        dtype = as_dtype(parameter.dtype).dtype
        given = np.resize(np.roll(numbers, -len(sources)), parameter.shape)
        if "float" not in parameter.dtype:
            given = np.where(np.abs(given) < 1e6, given, 0).astype("int64")
        with np.errstate(all="ignore"):
            a = given.astype(dtype)
        ((got,), (want,)) = call(library, after, source, [a]), interpret(kernel, [a])
        np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_a_variable_outside_of_the_loop_is_stored(tmp_path: Path, dtype: str) -> None:
    kernel = parse_kernel(f"""kernel outer(x: {dtype}[9]) -> (y) {{
      buffer y: {dtype}[4]
      serial i in 0 .. 4 {{
        local s: {dtype}[] {{
          s[] = x[5]
          serial j in 0 .. 4 {{ if (j == i) {{ s[] = abs(s[]) }} }}
          y[i] = s[]
        }}
      }}
    }}""")
    x = np.arange(-9, 0).astype(as_dtype(dtype).dtype)
    source = printed(kernel, 0)
    (got,) = call(build_together(tmp_path, [source]), kernel, source, [x])
    np.testing.assert_array_equal(got, np.full(4, 4, got.dtype))


@pytest.mark.parametrize("op", ["min", "max"])
def test_extremes_keep_nan(tmp_path: Path, vector_bytes: int, op: str) -> None:
    part = f"reduction i in 0 .. 50 {{{{ c[0] = {op}(c[0], a[i]) }}}}"
    kernel = run_passes(loop(part, "float32", 50), PASSES_TO_C)
    source = printed(kernel, 0)
    library = build_together(tmp_path, [source])
    for place in (0, 17, 48, 49):
        a = np.ones(300, "float32")
        a[place] = np.nan
        rest = [a, np.zeros(300, "int32"), np.int32([0])]
        assert np.isnan(call(library, kernel, source, [a, *rest])[0][0])


def lines(part: str, n: int = 40) -> str:
    text = printed(run_passes(loop(part, "float32", n), PASSES_TO_C), 0).text
    return text[text.index("static int ms_body") :]


def test_the_last_vector_overlaps_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines("parallel i in 0 .. {n} {{ c[i] = a[i] * b[i] }}")
    assert "const int64_t i = ms_times < 2 ? ms_next : 40 - 16;" in text
    assert (
        "*(ms_memory_float_16*)&c[i] = "
        "*(const ms_memory_float_16*)&a[i] * *(const ms_memory_float_16*)&b[i];" in text
    )


def test_iterations_that_may_not_run_twice_run_in_smaller_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines("parallel i in 0 .. {n} {{ c[i] = c[i] + a[i] }}", 45)
    assert [text.count(f"*(ms_memory_float_{n}*)&c[i] = ") for n in (16, 8, 4)] == [1, 1, 1]
    assert "for (; i < ms_last; ++i) {\n      c[i] = c[i] + a[i];" in text


def test_elements_in_turn_are_stored_together_from_within_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines(PARTS["in turn, twice, within variables"], 32)
    assert text.count("ms_put_every_2_f32_16(&c[(2 * i)], ms_stored_2, ms_stored_1);") == 1


@pytest.mark.parametrize(("n", "lanes"), [(8, []), (9, [8, 4]), (16, [8, 4]), (17, [16])])
def test_rows_shorter_than_a_vector_run_in_smaller_ones(
    monkeypatch: pytest.MonkeyPatch, n: int, lanes: list[int]
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines(PARTS["rows of a triangle"], n)
    found = [size for size in (16, 8, 4) if f"*(ms_memory_float_{size}*)&c[i] = " in text]
    assert found == lanes
    assert ("ms_left" in text) == (16 in lanes)


def test_a_sum_has_several_vectors_and_one_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines(PARTS["sum"], 128)
    assert text.count("ms_fma_16(*(const ms_memory_float_16*)&a[") == 4
    assert "sum = sum + ms_all_add_f32_16(ms_part_0_16_sum);" in text


def test_a_sum_whose_length_is_data_ends_under_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = lines("reduction i in at[0] .. at[1] {{ c[0] = c[0] + a[i] }}")
    assert "ms_left = (int32_t)(ms_last - i) > ms_vector_int32_t_8{0, 1, 2" in text
    assert "ms_some_f32_8(&a[" in text


def test_copies_are_made_by_the_function_for_this_processor(tmp_path: Path) -> None:
    # The oldest memcpy of glibc on x86-64 is one for any processor.
    kernel = parse_kernel("""kernel k(a: float32[300]) -> (a, b) {
      buffer b: float32[90000]
      a[7] = 0.0:float32
      parallel i in 0 .. 90000 { b[i] = a[i % 300] }
    }""")
    build_together(tmp_path, [printed(run_passes(kernel, PASSES_TO_C))])
    (library,) = tmp_path.glob("*.so")
    names = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    assert "memmove" in names
    assert "memcpy" not in names


AT_THE_END = """
import ctypes, mmap
import jax, numpy as np
import msops

def capped(first, count, value, w):
    y = output_tensor((2,), "float32")
    for i in range(2):
        for k in range(min(count[i], 9)):
            y[i] += value[first[i] + k] * w[first[i] + k]
    return y

PAGE = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * PAGE)
value = np.frombuffer(memory, "float32")[: PAGE // 4]
value[:] = 1
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE), 0) == 0
op = msops.Custom(capped, func_type="akg", compile_attrs={"lower": "native"})
given = jax.device_put(value, may_alias=True)
print(given.unsafe_buffer_pointer() == start)
n = len(value)
print(op(np.int32([n - 9, 0, 0]), np.int32([9, 9]), given, np.ones(n, "float32")))
"""


def test_nothing_past_the_last_lane_is_read(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(AT_THE_END)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "True\n[9. 9.]\n"), run.stderr


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_a_number_that_the_compiler_knows_becomes_a_vector(tmp_path: Path, dtype: str) -> None:
    kernel = parse_kernel(f"""kernel k(a: {dtype}[40], c: {dtype}[2]) -> (b) {{
      buffer b: {dtype}[40]
      parallel i in 0 .. 40 @vector(lanes) {{
        b[i] = a[i] + ((c[0] // c[1]) * 0:{dtype})
      }}
    }}""")
    a, c = np.arange(40).astype(dtype), np.array([7, 2], dtype)
    source = printed(kernel, 0)
    (got,) = call(build_together(tmp_path, [source]), kernel, source, [a, c])
    assert "vector" in source.text
    np.testing.assert_array_equal(got, a)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float32"])
@pytest.mark.parametrize("store", ["{}", "if (at[i] > 0) {{ {} }}"])
def test_an_empty_array_is_not_read(tmp_path: Path, dtype: str, store: str) -> None:
    kernel = parse_kernel(f"""kernel k(a: {dtype}[40, 0], at: int8[40]) -> (b) {{
      buffer b: {dtype}[40]
      parallel i in 0 .. 40 @vector(lanes) {{
        {store.format("b[i] = a[i, at[i]]")}
      }}
    }}""")
    a, at = np.zeros((40, 0), as_dtype(dtype).dtype), np.arange(-20, 20, dtype="int8")
    source = printed(kernel, 0)
    (got,) = call(build_together(tmp_path, [source]), kernel, source, [a, at])
    assert not got.any()
