"""Loops that count the bits of words become calls of `popcount`."""

from __future__ import annotations

import numpy as np
import pytest
from loop_ir import Kernel, count_bits, interpret, parse_kernel
from test_c_arrangement import body_of

from msops import Custom

COUNTS = """kernel counts(x: {word}[64, 2], y: {word}[64], at: int32[64]) -> (n) {{
  buffer n: int32[64]
  parallel i in 0 .. 64 {{
    serial b in {span} {{
      {body}
    }}
  }}
}}"""
BIT = "((x[i, 0] >> b) & 1)"


def counts(body: str, span: str = "0 .. 31", word: str = "int32") -> Kernel:
    body = body.replace(" b)", " b)" if word == "int32" else f" {word}(b))")
    body = body.replace("1)", "1)" if word == "int32" else f"1:{word})")
    return parse_kernel(COUNTS.format(body=body, span=span, word=word))


def counted(kernel: Kernel) -> str:
    """Returns the kernel's loops after the pass, which must count the same bits of any words."""
    after, rng = count_bits(kernel), np.random.default_rng(5)
    limits = np.iinfo(kernel.parameters[0].dtype)
    words = [
        rng.integers(limits.min, limits.max, b.shape, b.dtype, endpoint=True)
        for b in kernel.parameters[:2]
    ]
    # Where a word is 0 nothing is stored: out of range here.
    words[0][::7] = 0
    at = np.where(words[0][:, 0] == 0, 99, np.arange(64)[::-1]).astype(np.int32)
    want = interpret(kernel, [*words, at], check_bounds=True)
    np.testing.assert_array_equal(interpret(after, [*words, at], check_bounds=True), want)
    return body_of(after)


@pytest.mark.parametrize(
    "body",
    [
        f"n[i] = n[i] + {BIT}",
        f"n[i] = {BIT} + n[i]",
        "n[i] = n[i] + (1 & (x[i, 0] >> b))",
        "n[i] = n[i] + ((x[i, 0] >> b) % 2)",
        f"n[i] = n[i] + ({BIT} ^ ((y[i] >> b) & 1))",
        "n[i] = n[i] + (((x[i, 0] >> b) | (y[i] >> b)) & 1)",
        f"n[i] = n[i] + int32({BIT} != ((y[i] >> b) & 1))",
        f"if ({BIT} == 1) {{ n[i] = n[i] + 1 }}",
        "if ((x[i, 0] & (1 << b)) != 0) { n[i] = n[i] + 1 }",
    ],
)
@pytest.mark.parametrize("span", ["0 .. 31", "0 .. 32", "3 .. 9", "31 .. 32"])
def test_sums_of_bits_are_counted_at_once(body: str, span: str) -> None:
    text = counted(counts(body, span))
    assert "popcount" in text
    assert "serial" not in text


@pytest.mark.parametrize("word", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("beyond", [0, 1])
def test_all_bits_of_words_of_each_size(word: str, beyond: int) -> None:
    width = np.iinfo(word).bits
    body = f"n[i] = n[i] + int32((x[i, 0] >> {word}(b)) & 1:{word})"
    kernel = parse_kernel(COUNTS.format(body=body, span=f"0 .. {width + beyond}", word=word))
    if beyond:
        assert count_bits(kernel) is kernel
    else:
        assert "popcount" in counted(kernel)


@pytest.mark.parametrize(
    ("body", "span"),
    [
        (f"n[i] = n[i] + {BIT}", "0 .. at[i]"),
        (f"n[i] = n[i] + {BIT}", "5 .. 5"),
        ("n[i] = n[i] + ((x[i, b % 2] >> b) & 1)", "0 .. 31"),
        ("n[i] = n[i] + ((x[i, 0] >> b) & 3)", "0 .. 31"),
        ("n[i] = n[i] + ((x[i, 0] >> 3) & 1)", "0 .. 31"),
        ("n[i] = n[i] + ((n[0] >> b) & 1)", "0 .. 31"),
        (f"n[i] = n[i] - {BIT}", "0 .. 31"),
        (f"n[i] = n[i] ^ {BIT}", "0 .. 31"),
        (f"n[b] = n[b] + {BIT}", "0 .. 31"),
        (f"if ({BIT} == 1) {{ n[i] = n[i] + 2 }}", "0 .. 31"),
        (f"if ({BIT} == 0) {{ n[i] = n[i] + 1 }}", "0 .. 31"),
        (f"n[i] = n[i] + {BIT} n[0] = n[0] + 1", "0 .. 31"),
    ],
)  # fmt: skip
def test_other_loops_stay(body: str, span: str) -> None:
    kernel = counts(body, span)
    assert count_bits(kernel) is kernel


def test_an_element_is_out_of_range_only_where_no_bit_is_set() -> None:
    body = "if ((x[i, 0] & (1 << b)) != 0) { n[at[i]] = n[at[i]] + 1 }"
    assert "popcount" in counted(counts(body, span="0 .. 32"))


def distances(a, b):  # type: ignore[no-untyped-def]  # a kernel
    out = output_tensor((a.shape[0], b.shape[0]), "int32")  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for bit in range(31):
                out[i, j] += ((a[i] ^ b[j]) >> bit) & 1
    return out


@pytest.mark.parametrize("form", ["native", "xla"])
def test_distances_of_codes(form: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.integers(-(2**31), 2**31, (2, 50)).astype(np.int32)
    op = Custom(distances, func_type="akg", compile_attrs={"lower": form})
    wanted = np.bitwise_count((a[:, None] ^ b) & 0x7FFFFFFF)
    np.testing.assert_array_equal(op(a, b), wanted)
