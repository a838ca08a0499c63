"""Elements that conditions change again, in variables: by text, and by what they compute."""

from __future__ import annotations

import pytest
from loop_ir import Kernel, carry_elements, kernel_text, parse_kernel
from test_c_arrangement import arranged

DISTANCES = """kernel distances(a: int32[9], b: int32[12]) -> (t) {{
  buffer t: int32[9, 12]
  serial i in 2 .. 9 {{
    serial j in 2 .. 12 {{
      local cost: int32[] {{
        cost[] = (a[i] == b[j]) ? 0 : 1
        {store}
        {more}
      }}
    }}
  }}
}}"""
STORE = "t[i, j] = min(t[i - 1, j] + 1, min(t[i, j - 1] + 1, t[i - 1, j - 1] + cost[]))"
MORE = """if ((a[i] == b[j - 1]) && (a[i - 1] == b[j])) {
  t[i, j] = min(t[i, j], t[i - 2, j - 2] + 1)
}"""


def distances(store: str = STORE, more: str = MORE) -> Kernel:
    return parse_kernel(DISTANCES.format(store=store, more=more))


def lines_of(kernel: Kernel) -> list[str]:
    return [line.strip() for line in kernel_text(kernel).splitlines()]


def test_an_element_that_conditions_change_again_is_stored_once() -> None:
    lines = lines_of(arranged(carry_elements, distances()))
    at = lines.index(
        "carried[] = min(t[i - 1, j] + 1, min(carried[] + 1, t[i - 1, j - 1] + cost[]))"
    )
    assert lines[at + 1 : at + 5] == [
        "if ((a[i] == b[j - 1]) && (a[i - 1] == b[j])) {",
        "carried[] = min(carried[], t[i - 2, j - 2] + 1)",
        "}",
        "t[i, j] = carried[]",
    ]


def test_what_follows_the_last_change_reads_the_element_from_memory() -> None:
    more = MORE + " a[0] = t[i, j] t[i - 2, 0] = 1"
    assert "carried" not in kernel_text(carry_elements(distances(more=more)))
    lines = lines_of(arranged(carry_elements, distances(more=MORE + " cost[] = t[i, j]")))
    assert lines[lines.index("t[i, j] = carried[]") + 1] == "cost[] = t[i, j]"


@pytest.mark.parametrize(
    ("store", "more"),
    [
        (f"if (a[i] > 0) {{ {STORE} }}", MORE),
        (STORE, "if (a[i] > 0) { t[i, j - 1] = 3 }"),
        (STORE, "if (a[i] > 0) { t[i, j] = t[i, b[j]] }"),
        (STORE, "if (a[i] > 0) { t[i, j] = t[i, j - 1] }"),
        (f"{STORE} local c: int32[] {{ c[] = t[i, j] }}", MORE.replace("i - 2, j - 2", "a[0], j")),
        (f"local c: int32[] {{ c[] = a[i] {STORE} }}", MORE),
    ],
    ids=["no first store", "another element", "any element", "the last one", "any row", "apart"],
)
def test_elements_that_are_not_carried_past_conditions(store: str, more: str) -> None:
    kernel = distances(store, more)
    assert carry_elements(kernel) == kernel


@pytest.mark.parametrize(
    "step",
    ["s[] = s[] + int32(at[j])", "t[j, at[0]] = t[j - 1, at[0]] + 1 at[0] = 3:uint8"],
    ids=["no array", "data that change"],
)
def test_other_elements_stay_in_memory(step: str) -> None:
    kernel = parse_kernel(f"""kernel k(at: uint8[12], t: int32[12, 256], s: int32[]) -> (t, s) {{
      serial j in 1 .. 11 {{ {step} }}
    }}""")
    assert "carried: int32[]" not in kernel_text(arranged(carry_elements, kernel))
