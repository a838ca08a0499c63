"""What a kernel becomes: by estimates of costs on a CPU, by its loops on a GPU."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from loop_ir import (
    Costs,
    Form,
    Specialisation,
    Stages,
    adjoint,
    c_cost,
    choose_for_cpu,
    parse_kernel,
)

import msops
from msops.errors import BuildError, KernelError

pytestmark = pytest.mark.usefixtures("avx")

ADD = """kernel add(a: float32[n, n]) -> (b) {
  buffer b: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      b[i, j] = a[i, j] + 1.0:float32
    }
  }
}"""
PRODUCT = """kernel product(a: float32[n, n]) -> (b) {
  buffer b: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      serial k in 0 .. n {
        b[i, j] = b[i, j] + (a[i, k] * a[k, j])
      }
    }
  }
}"""
POOL = """kernel pool(a: float32[n, n]) -> (b) {
  buffer b: float32[n // 2, n // 2]
  serial i in 0 .. n // 2 {
    serial j in 0 .. n // 2 {
      serial k in 0 .. 2 {
        serial l in 0 .. 2 {
          b[i, j] = max(b[i, j], a[(i * 2) + k, (j * 2) + l])
        }
      }
    }
  }
}"""
SUMS = """kernel sums(a: float32[n, n]) -> (b) {
  buffer b: float32[n, n]
  serial i in 0 .. n {
    b[i, 0] = a[i, 0]
    serial j in 0 .. n - 1 {
      b[i, j + 1] = b[i, j] + a[i, j + 1]
    }
  }
}"""
IN_ORDER = """kernel in_order(a: float32[n, n]) -> (b) {
  buffer b: float32[n, n]
  serial i in 0 .. n - 1 {
    serial j in 0 .. n - 1 {
      b[i + 1, j + 1] = max(b[i, j + 1], b[i + 1, j]) * a[i, j]
    }
  }
}"""

RECURRENT = """kernel recurrent(w: float32[n, n], x: float32[n, n]) -> (out) {
  buffer out: float32[n, n]
  buffer h: float32[n]
  buffer g: float32[n]
  serial t in 0 .. n {
    serial j in 0 .. n {
      local s: float32[] {
        s[] = x[t, j]
        serial k in 0 .. n {
          s[] = s[] + (h[k] * w[k, j])
        }
        g[j] = s[]
      }
    }
    serial m in 0 .. n {
      h[m] = tanh(g[m])
      out[t, m] = h[m]
    }
  }
}"""
FORCES = """kernel forces(x: float32[n], m: float32[n]) -> (f) {
  buffer f: float32[n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      f[i] = f[i] + (((x[j] - x[i]) / (((x[j] - x[i]) * (x[j] - x[i])) + 1.0:float32)) * m[j])
    }
  }
}"""

CENTRED = """kernel centred(x: float32[n, n]) -> (c) {
  buffer c: float32[n, n]
  buffer mean: float32[n]
  serial j in 0 .. n {
    serial i in 0 .. n {
      mean[j] = mean[j] + x[i, j]
    }
  }
  serial i2 in 0 .. n {
    serial j2 in 0 .. n {
      serial k in 0 .. n {
        c[i2, j2] = c[i2, j2] + ((x[k, i2] - mean[i2]) * (x[k, j2] - mean[j2]))
      }
    }
  }
}"""

SCALED = """kernel scaled(a: float32[n, n], r: float32[n]) -> (b) {
  buffer b: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      b[i, j] = VALUE
    }
  }
}"""


def compiled(text: str, n: int, lower: Form | None = None) -> Specialisation:
    text = re.sub(r"\bn // (\d+)", lambda found: str(n // int(found[1])), text)
    text = re.sub(r"\bn - (\d+)", lambda found: str(n - int(found[1])), text)
    for expression, value in {", n": f", {n}", "[n": f"[{n}"}.items():
        text = text.replace(expression, value)
    kernel = parse_kernel(text.replace(".. n ", f".. {n} "))
    return Specialisation(Stages(kernel, "Custom 'k' on CPU"), lower)


@pytest.mark.parametrize(
    ("native", "xla", "fusion", "are_sure"),
    [(1.0, 3.0, 0.4, True), (1.0, 3.0, 0.6, False), (1.0, 1.5, 9.0, False), (3.0, 1.5, 0.0, True)],
)
def test_estimates_are_sure_if_fusing_cannot_change_the_faster_form(
    native: float, xla: float, fusion: float, are_sure: bool
) -> None:
    estimates = compiled(ADD, 64).stages.estimates
    costs = dataclasses.replace(estimates, native=native, xla=xla, fusion=fusion)
    assert costs.are_sure is are_sure


# What was measured: benchmarks/loops_choice.py. XLA wakes a thread for 64 x 64 sums, which takes
# twice as long as native code in all; of 1024 x 1024 ones, fusing could save more than native code
# does. Native code is 8 times as fast as XLA's pooling of those, and a quarter as fast as its
# product of 512 x 512. A product with a vector that runs in order takes native code 0.75 ms, XLA
# 0.9, and what makes an n x n array for a product with a vector writes it in XLA's form. What is
# subtracted from the factors of a product takes XLA next to nothing.
@pytest.mark.parametrize(
    ("text", "n", "cpu", "gpu"),
    [
        (ADD, 8, "xla", "xla"),
        (ADD, 64, "native", "xla"),
        (ADD, 1024, "xla", "xla"),
        (PRODUCT, 8, "native", "xla"),
        (PRODUCT, 512, "xla", "xla"),
        (POOL, 64, "native", "xla"),
        (POOL, 1024, "native", "xla"),
        (SUMS, 8, "native", "xla"),
        (SUMS, 1024, "native", "xla"),
        (IN_ORDER, 8, "native", "native"),
        (IN_ORDER, 1024, "native", "native"),
        (RECURRENT, 256, "native", "xla"),
        (FORCES, 1024, "native", "xla"),
        (CENTRED, 512, "xla", "xla"),
    ],
)
def test_what_is_chosen(text: str, n: int, cpu: Form, gpu: Form) -> None:
    kernel = compiled(text, n)
    assert [kernel.lowering(platform) for platform in ("cpu", "cuda", "tpu")] == [cpu, gpu, "xla"]


@pytest.mark.parametrize("text", [ADD, IN_ORDER])
@pytest.mark.parametrize("lower", ["xla", "native"])
def test_what_is_asked_for_is_chosen(text: str, lower: Form) -> None:
    kernel = compiled(text, 8, lower)
    assert [kernel.lowering(platform) for platform in ("cpu", "cuda")] == [lower, lower]
    assert kernel.lowering("tpu") == "xla"
    assert kernel.choice("cpu").reason.endswith("as compile_attrs asks")


def test_a_gpu_gets_native_code_unless_one_thread_would_run_parallel_loops() -> None:
    assert compiled(IN_ORDER, 64).choice("cuda").reason == (
        "native code, as loop i must run in order"
    )
    assert compiled(RECURRENT, 8).lowering("cuda") == "native"
    assert compiled(RECURRENT, 64).choice("cuda").reason == (
        "XLA operations, as one thread would run all of loop j"
    )


def test_the_reason_tells_both_estimates() -> None:
    name, costs = compiled(POOL, 1024).choice("cpu").reason.split(": an estimated ")
    assert name == "native code"
    native, xla = (amount.split()[:2] for amount in costs.split(", ")[:2])
    seconds = {"us": 1e-6, "ms": 1e-3}
    # Measured: 0.09 ms and 0.72 ms.
    assert 0.03e-3 < float(native[0]) * seconds[native[1]] < 0.3e-3
    assert 0.24e-3 < float(xla[0]) * seconds[xla[1]] < 2.2e-3
    assert compiled(ADD, 8).choice("cpu").reason.startswith("XLA operations: an estimated ")
    said = ", of which fusing them with others may save "
    assert said in compiled(ADD, 1024).choice("cpu").reason


def test_loops_in_order_are_native_code_without_an_estimate() -> None:
    choice = compiled(IN_ORDER, 8).choice("cpu")
    assert choice.reason == "native code, as loop i must run in order"
    assert not choice.seconds


def test_what_a_loop_in_order_becomes_is_known_without_its_operations() -> None:
    kernel = compiled(IN_ORDER, 64)
    assert kernel.lowering("cpu") == kernel.choice("cpu").lowering == "native"
    assert not {"_raised", "steps", "arranged"} & vars(kernel.stages).keys()


def seconds_as_xla(text: str, n: int) -> float:
    return compiled(text, n).stages.estimates.xla


def is_near(estimate: float, measured: float) -> bool:
    return measured / 3 < estimate < measured * 3


@pytest.mark.parametrize(
    ("channels", "filters", "taps", "measured"),
    [
        (1, 1, "o, k", 0.29e-3),
        (64, 64, "o, k", 7.3e-3),
        # Each channel has a filter of its own.
        (1, 64, "o", 10.5e-3),
    ],
)
def test_a_convolution_of_few_filters_costs_xla_its_patches(
    channels: int, filters: int, taps: str, measured: float
) -> None:
    image = "o" if taps == "o" else "k"
    sizes = {"o": filters, "k": channels}
    shape = ", ".join(str(sizes[axis]) for axis in taps.split(", "))
    text = f"""kernel k(x: float32[{sizes[image]}, 64, 64], w: float32[{shape}, 3, 3]) -> (y) {{
  buffer y: float32[{filters}, 62, 62]
  serial o in 0 .. {filters} {{
    serial i in 0 .. 62 {{
      serial j in 0 .. 62 {{
        serial k in 0 .. {channels} {{
          serial p in 0 .. 3 {{
            serial q in 0 .. 3 {{
              y[o, i, j] = y[o, i, j] + (x[{image}, i + p, j + q] * w[{taps}, p, q])
            }}
          }}
        }}
      }}
    }}
  }}
}}"""
    seconds = dict(compiled(text, 64).choice("cpu").seconds)["XLA operations"]
    assert measured / 3 < seconds < measured * 3


def test_what_depends_on_one_axis_costs_xla_a_row() -> None:
    def seconds(value: str) -> float:
        return dict(compiled(SCALED.replace("VALUE", value), 2048).choice("cpu").seconds)[
            "XLA operations"
        ]

    # Measured with XLA: 2.05, 2.12 and 36 ms.
    plain = seconds("a[i, j] * r[j]")
    along = seconds("a[i, j] * exp(sin(exp(cos(r[j]))))")
    everywhere = seconds("exp(sin(exp(cos(a[i, j])))) * r[j]")
    assert along < 1.5 * plain
    assert everywhere > 3 * plain


BINNED = """kernel binned(r: int32[n], x: float32[n]) -> (y) {
  buffer y: float32[50]
  serial b in 0 .. 50 {
    serial i in 0 .. n {
      if (r[i] == int32(b)) {
        y[b] = y[b] + x[i]
      }
    }
  }
}"""
BLURRED = """kernel blurred(x: float32[n, 900], w: float32[9]) -> (y) {
  buffer y: float32[n, 900]
  serial i in 0 .. n {
    serial j in 0 .. 900 {
      serial p in 0 .. 9 {
        y[i, j] = y[i, j] + (w[p] * x[i, min(max((j + p) - 4, 0), 899)])
      }
    }
  }
}"""
TIMES = """kernel times(a: float32[n, n], x: float32[n]) -> (y) {
  buffer y: float32[n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i] = y[i] + (a[i, j] * x[j])
    }
  }
}"""
GRAY = """kernel gray(x: float32[n, n, 3]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i, j] = (x[i, j, 0] + x[i, j, 1]) + x[i, j, 2]
    }
  }
}"""

SINES = """kernel sines(x: float32[n, n]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i, j] = VALUE
    }
  }
}"""

PICKED = """kernel picked(x: float32[n, n], b: float32[n, n]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      local at: int32[] {
        at[] = min(max(int32(b[i, j]), 0), 9)
        y[i, j] = ((x[i, at[]] + x[at[], i]) + (x[at[], at[]] + x[at[], 5]))
          + ((x[5, at[]] + x[at[], 7]) + (x[8, at[]] + x[at[], 3]))
      }
    }
  }
}"""


def windows(op: str, taps: int, *, dtype: str = "float32", factor: str = "") -> str:
    """Returns a kernel that combines the elements of square windows."""
    inside = f"n - {taps - 1}"
    text = f"""kernel windows(x: DTYPE[n, n], w: DTYPE[{taps}, {taps}]) -> (y) {{
      buffer y: DTYPE[INSIDE, INSIDE]
      serial i in 0 .. INSIDE {{
        serial j in 0 .. INSIDE {{
          serial p in 0 .. {taps} {{
            serial q in 0 .. {taps} {{
              y[i, j] = {op.format("y[i, j]", "x[i + p, j + q]" + factor)}
            }}
          }}
        }}
      }}
    }}"""
    return text.replace("DTYPE", dtype).replace("INSIDE", inside)


SUM, GREATEST = "{} + ({})", "max({}, {})"
WEIGHED = " * w[p, q]"
APART = windows(SUM, 2).replace("i + p", "(i * 2) + p").replace("j + q", "(j * 2) + q")
APART = APART.replace("n - 1", "n // 2")
SPATIAL = """kernel spatial(x: float32[n, n, n], w: float32[3, 3, 3]) -> (y) {
  buffer y: float32[INSIDE, INSIDE, INSIDE]
  serial i in 0 .. INSIDE {
    serial j in 0 .. INSIDE {
      serial k in 0 .. INSIDE {
        serial p in 0 .. 3 {
          serial q in 0 .. 3 {
            serial r in 0 .. 3 {
              y[i, j, k] = y[i, j, k] + (x[i + p, j + q, k + r] * w[p, q, r])
            }
          }
        }
      }
    }
  }
}""".replace("INSIDE", "n - 2")
DIFFERENCES = """kernel differences(x: float32[n], z: float32[n - 6]) -> (y) {
  buffer y: float32[n - 6]
  serial i in 0 .. n - 6 {
    serial p in 0 .. 7 {
      y[i] = y[i] + abs(x[i + p] - z[i])
    }
  }
}"""
SPREAD = """kernel spread(x: float32[n - 6], z: float32[n]) -> (y) {
  buffer y: float32[n]
  serial i in 0 .. n - 6 {
    serial p in 0 .. 7 {
      y[i + p] = y[i + p] + (x[i] * z[i + p])
    }
  }
}"""
ROWS = windows(GREATEST, 16).replace("serial p in 0 .. 16", "serial p in 0 .. 1")
CHANNELS = SPATIAL.replace("x: float32[", "x: float32[8, ").replace("w: float32[", "w: float32[8, ")
CHANNELS = CHANNELS.replace("serial p in", "serial c in 0 .. 8 { serial p in").replace(
    "}\n}", "} }\n}"
)
CHANNELS = CHANNELS.replace("x[", "x[c, ").replace("w[", "w[c, ")
JACOBI = """kernel jacobi(x: float32[n]) -> (y) {
  buffer y: float32[n]
  buffer z: float32[n]
  serial t in 0 .. 50 {
    serial i in 0 .. n - 2 {
      z[i + 1] = ((y[i] + y[i + 1]) + y[i + 2]) + x[i]
    }
    serial j in 0 .. n - 2 {
      y[j + 1] = ((z[j] + z[j + 1]) + z[j + 2]) * 0.3:float32
    }
  }
}"""
DECAYS = """kernel decays(a: float32[512, n], c: float32[n, 16]) -> (b) {
  buffer b: float32[n, 16]
  serial t in 0 .. 512 {
    serial i in 0 .. n {
      serial j in 0 .. 16 {
        b[i, j] = (exp(-(a[t, i] * c[i, j])) * b[i, j]) + c[i, j]
      }
    }
  }
}"""
LEAKY = """kernel leaky(x: float32[n, n], w: float32[n]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      if (x[i, j] > 0.0:float32) {
        y[i, j] = x[i, j]
      } else {
        y[i, j] = w[i] * x[i, j]
      }
    }
  }
}"""
CELLS = """kernel cells(x: float32[n, n]) -> (y) {
  buffer y: float32[n, n, 2]
  serial i in 1 .. n - 1 {
    serial j in 1 .. n - 1 {
      if ((i % 2) == 0) {
        if ((j % 2) == 0) {
          y[i, j, 0] = x[i, j]
          y[i, j, 1] = x[i, j - 1] + x[i, j + 1]
        } else {
          y[i, j, 0] = x[i - 1, j] + x[i + 1, j]
          y[i, j, 1] = x[i, j]
        }
      } else {
        if ((j % 2) == 0) {
          y[i, j, 0] = x[i, j] * 2.0:float32
          y[i, j, 1] = x[i - 1, j] - x[i + 1, j]
        } else {
          y[i, j, 0] = x[i, j - 1] - x[i, j + 1]
          y[i, j, 1] = x[i, j] * 3.0:float32
        }
      }
    }
  }
}"""
MATRICES = """kernel matrices(a: float32[n, 16, 4], x: float32[n, 4]) -> (y) {
  buffer y: float32[n, 16]
  serial b in 0 .. n {
    serial i in 0 .. 16 {
      serial k in 0 .. 4 {
        y[b, i] = y[b, i] + (a[b, i, k] * x[b, k])
      }
    }
  }
}"""
HALVES = """kernel halves(a: float32[n]) -> (a) {
  serial b in 0 .. n // 64 {
    serial k in 0 .. 32 {
      a[((b * 64) + k) + 32] = (a[((b * 64) + k) + 32] * 0.5:float32) + a[(b * 64) + k]
    }
  }
}"""
QUARTERS = """kernel quarters(w: float32[n, n], g: float32[n, n]) -> (w) {
  serial i in 0 .. n // 2 {
    serial j in 0 .. n // 2 {
      w[2 * i, 2 * j] = w[2 * i, 2 * j] - g[2 * i, 2 * j]
      w[2 * i, (2 * j) + 1] = w[2 * i, (2 * j) + 1] - g[2 * i, 2 * j]
      w[(2 * i) + 1, 2 * j] = w[(2 * i) + 1, 2 * j] - g[2 * i, 2 * j]
      w[(2 * i) + 1, (2 * j) + 1] = w[(2 * i) + 1, (2 * j) + 1] - g[2 * i, 2 * j]
    }
  }
}"""
WAVES = """kernel waves(x: float64[n], f: float64[n], h: float64[n]) -> (y) {
  buffer y: float64[n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i] = y[i] + (f[j] * cos(x[j] * h[i]))
    }
  }
}"""
MEASURED_AS_XLA = {
    "sums of windows": (windows(SUM, 7), 306, 0.9e-3),
    "extremes of windows": (windows(GREATEST, 7), 306, 4.6e-3),
    "sums of windows apart": (APART, 1024, 1.29e-3),
    "a convolution of float64": (windows(SUM, 3, dtype="float64", factor=WEIGHED), 1000, 1.04e-3),
    "a convolution of three dimensions": (SPATIAL, 60, 0.15),
    "the same of many channels": (CHANNELS, 34, 26.6e-3),
    "extremes of windows in rows": (ROWS, 600, 0.5e-3),
    "most of an array in a loop": (JACOBI, 100_000, 12e-3),
    "windows that overlap": (DIFFERENCES, 100_000, 0.8e-3),
    "a scatter into windows": (SPREAD, 1_000_000, 55e-3),
    "functions in a loop": (DECAYS, 256, 3.0e-3),
    "two branches that store to a result": (LEAKY, 896, 0.12e-3),
    "parts of a result in branches": (CELLS, 1500, 2.7e-3),
    "products of many small matrices": (MATRICES, 60_000, 1.7e-3),
    "half of each row": (HALVES, 1 << 17, 89e-6),
    "quarters of each block, one by one": (QUARTERS, 512, 0.53e-3),
    "a product with functions": (WAVES, 600, 1.58e-3),
    "a logarithm of float64": (
        SINES.replace("VALUE", "log(x[i, j])").replace("float32", "float64"), 1000, 3.0e-3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURED_AS_XLA)
def test_estimates_of_array_operations_are_near_what_was_measured(name: str) -> None:
    text, n, measured = MEASURED_AS_XLA[name]
    assert is_near(seconds_as_xla(text, n), measured)


CORNER = """if ((((0 <= TOP) && (TOP < 750)) && (0 <= LEFT)) && (LEFT < 750)) {
          s[] = s[] + ((WEIGHT) * image[TOP, LEFT])
        }"""
ROTATED = """kernel rotated(image: float32[n, n, 3], m: float32[2, 3]) -> (y) {
  buffer y: float32[n, n, 3]
  serial i in 0 .. n {
    serial j in 0 .. n {
      local left: int32[] {
        local top: int32[] {
          left[] = int32(((m[0, 0] * float32(j)) + (m[0, 1] * float32(i))) + m[0, 2])
          top[] = int32(((m[1, 0] * float32(j)) + (m[1, 1] * float32(i))) + m[1, 2])
          if (((left[] >= 0) && (left[] < 720)) && ((top[] >= 0) && (top[] < 720))) {
            serial c in 0 .. 3 {
              y[i, j, c] = image[top[], left[], c]
            }
          }
        }
      }
    }
  }
}"""
WARPED = """kernel warped(image: float32[n, n], m: float32[2, 3]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      local s: float32[] {
        local x: float32[] {
          local y0: float32[] {
            local left: int32[] {
              local top: int32[] {
                x[] = ((m[0, 0] * float32(j)) + (m[0, 1] * float32(i))) + m[0, 2]
                y0[] = ((m[1, 0] * float32(j)) + (m[1, 1] * float32(i))) + m[1, 2]
                left[] = int32(floor(x[]))
                top[] = int32(floor(y0[]))
                CORNERS
                y[i, j] = s[]
              }
            }
          }
        }
      }
    }
  }
}""".replace(
    "CORNERS",
    "\n".join(
        CORNER.replace("TOP", top).replace("LEFT", left).replace("WEIGHT", f"{down} * {right}")
        for top, down in (("top[]", "(1.0:float32 - (y0[] - float32(top[])))"),
                          ("(top[] + 1)", "(y0[] - float32(top[]))"))
        for left, right in (("left[]", "(1.0:float32 - (x[] - float32(left[])))"),
                            ("(left[] + 1)", "(x[] - float32(left[]))"))
    ),
)  # fmt: skip
"""Reads the four elements around a position that was computed, as far as there are such."""


CHECKERED = """kernel checkered(r: float32[n, n]) -> (y) {
  buffer y: float32[n, n]
  serial t in 0 .. 2 {
    serial i in 0 .. n {
      serial j in 1 .. n - 1 {
        if (((i - j) % 2) == t) {
          y[i, j] = (y[i, j - 1] + y[i, j + 1]) * r[i, j]
        }
      }
    }
  }
}"""
LAYERED = """kernel layered(a: uint8[3, n, n, 4]) -> (y) {
  buffer y: int32[n, n, 3]
  serial i in 0 .. n {
    serial j in 0 .. n {
      serial c in 0 .. 3 {
        local v: int32[] {
          v[] = 0
          serial l in 0 .. 3 {
            local w: int32[] {
              w[] = int32(a[l, i, j, 3])
              v[] = (((w[] * int32(a[l, i, j, c])) + ((255 - w[]) * v[])) + 127) // 255
            }
          }
          y[i, j, c] = v[]
        }
      }
    }
  }
}"""
AVERAGED = """kernel averaged(x: float32[n, 56, 56]) -> (y) {
  buffer y: float32[n, 28, 28]
  serial b in 0 .. n {
    serial i in 0 .. 28 {
      serial j in 0 .. 28 {
        local s: float32[] {
          local m: int32[] {
            s[] = 0.0:float32
            m[] = 0
            serial p in 0 .. 3 {
              serial q in 0 .. 3 {
                if (((((i * 2) + p) - 1) >= 0) && ((((j * 2) + q) - 1) >= 0)) {
                  s[] = s[] + x[b, ((i * 2) + p) - 1, ((j * 2) + q) - 1]
                  m[] = m[] + 1
                }
              }
            }
            y[b, i, j] = s[] / float32(m[])
          }
        }
      }
    }
  }
}"""
SHUFFLED = """kernel shuffled(x: float32[4, n, n]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i, j] = x[((i % 2) * 2) + (j % 2), i // 2, j // 2]
    }
  }
}"""
PICKED_PAIRS = """kernel pairs(x: float32[16, n], at: int32[n, n], w: float32[16, 16]) -> (y) {
  buffer y: float32[16, n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      serial c in 0 .. 16 {
        local v: float32[] {
          v[] = 0.0:float32
          serial p in 0 .. 2 {
            if ((at[i, j] + p) < n - 1) {
              v[] = v[] + x[c, at[i, j] + p]
            }
          }
          serial o in 0 .. 16 {
            y[o, i, j] = y[o, i, j] + (w[o, c] * v[])
          }
        }
      }
    }
  }
}"""
MULTIPLIED = """kernel multiplied(a: float32[n], b: float32[300]) -> (c) {
  buffer c: float32[n]
  serial k in 0 .. n {
    serial i in max(k - 299, 0) .. min(k + 1, n) {
      c[k] = c[k] + (a[i] * b[k - i])
    }
  }
}"""
RESIZED = """kernel resized(x: float32[n, n]) -> (y) {
  buffer y: float32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      local p: float32[] {
        local at: int32[] {
          p[] = float32(j) * 0.7:float32
          at[] = int32(floor(p[]))
          serial k in int64(max(at[] - 2, 0)) .. int64(min(at[] + 4, n)) {
            y[i, j] = y[i, j] + (x[i, k] * (p[] - float32(k)))
          }
        }
      }
    }
  }
}"""
BOXES = """kernel boxes(c: int32[n, 4], z: float32[n]) -> (y) {
  buffer y: float32[n, n]
  serial k in 0 .. n {
    local top: int32[] {
      local left: int32[] {
        local bottom: int32[] {
          local right: int32[] {
            top[] = max(c[k, 0], 0)
            left[] = max(c[k, 1], 0)
            bottom[] = min(c[k, 2], n)
            right[] = min(c[k, 3], n)
            serial i in top[] .. bottom[] {
              serial j in left[] .. right[] {
                if (z[k] > y[i, j]) {
                  y[i, j] = z[k]
                }
              }
            }
          }
        }
      }
    }
  }
}"""
QUOTIENTS = """kernel quotients(x: int32[n, n], z: int32[n, n]) -> (y) {
  buffer y: int32[n, n]
  serial i in 0 .. n {
    serial j in 0 .. n {
      y[i, j] = x[i, j] // z[i, j]
    }
  }
}"""


@pytest.mark.parametrize(
    ("text", "n", "form", "measured"),
    [
        (BINNED, 200_000, "xla", 10.6e-3),
        (BLURRED, 800, "xla", 2.65e-3),
        (TIMES, 4000, "xla", 1.36e-3),
        (GRAY, 1450, "native", 0.66e-3),
        (PICKED, 1000, "native", 1.54e-3),
        (SINES.replace("VALUE", "exp(x[i, j])"), 1000, "xla", 0.25e-3),
        (SINES.replace("VALUE", "sin(x[i, j])"), 1000, "xla", 1.8e-3),
        (SINES.replace("VALUE", "pow(x[i, j], x[i, j])"), 1000, "xla", 1.6e-3),
        (SINES.replace("VALUE", "(x[i, j] % 0.3:float32)"), 1000, "xla", 7.1e-3),
        (WARPED, 750, "native", 1.3e-3),
        (WARPED, 750, "xla", 0.85e-3),
        (SINES.replace("VALUE", "exp(x[i, j])"), 1000, "native", 0.16e-3),
        (SINES.replace("VALUE", "pow(x[i, j], x[i, j])"), 1000, "native", 0.9e-3),
        (SINES.replace("VALUE", "(x[i, j] % 0.3:float32)"), 1000, "native", 8.4e-3),
        (QUOTIENTS, 1000, "native", 0.9e-3),
        (QUOTIENTS, 1000, "xla", 1.1e-3),
        (CHECKERED, 400, "native", 78e-6),
        (LAYERED, 500, "native", 0.1e-3),
        (SHUFFLED, 800, "native", 0.13e-3),
        (PICKED_PAIRS, 70, "native", 0.24e-3),
        (MULTIPLIED, 20_000, "native", 0.19e-3),
        (RESIZED, 300, "native", 0.23e-3),
    ],
    ids=["a masked sum", "a product of a gathered factor", "a large factor", "pixels",
         "picked elements", "a function in vectors", "a function one by one", "powers",
         "remainders", "elements picked in branches", "elements gathered under masks",
         "a function in native vectors", "powers in native code", "remainders in native code",
         "quotients in native code", "quotients", "every second element", "layers of pixels",
         "quotients as indices", "columns in lines of a cache",
         "windows with ends", "windows around data"],
)  # fmt: skip
def test_estimates_are_near_what_was_measured(
    text: str, n: int, form: str, measured: float
) -> None:
    assert is_near(getattr(compiled(text, n).stages.estimates, form), measured)


def test_a_quotient_by_a_constant_costs_what_a_product_does() -> None:
    def estimates(value: str) -> Costs:
        return compiled(QUOTIENTS.replace("x[i, j] // z[i, j]", value), 1000).stages.estimates

    by_constant, product = estimates("x[i, j] // 7"), estimates("x[i, j] * 7")
    assert by_constant.native == product.native
    assert by_constant.xla == product.xla


@pytest.mark.parametrize(("quick", "others"), [("2.0", "1.7"), ("0.5", "0.3"), ("-1.0", "-2.5")])
def test_a_power_that_is_a_product_root_or_quotient_is_quick(quick: str, others: str) -> None:
    def native(exponent: str) -> float:
        text = SINES.replace("VALUE", f"pow(x[i, j], {exponent}:float32)")
        return compiled(text, 1000).stages.estimates.native

    assert 4 * native(quick) < native(others)


def test_elements_farther_than_a_loop_is_long_cost_native_code_no_vectors() -> None:
    # Measured: a circuit of 16 stages takes 0.14 and 3.0 ms.
    estimates = compiled(HALVES, 1 << 17).stages.estimates
    assert 4 * estimates.native < estimates.xla


def test_boxes_between_positions_that_are_data_are_smaller_than_the_array() -> None:
    # Measured with boxes of 20 by 20: 0.05 and 120 ms.
    assert compiled(BOXES, 400).lowering("cpu") == "native"


def test_sums_in_registers_cost_native_code_no_accesses() -> None:
    # Measured: 0.15 and 0.3 ms.
    assert compiled(AVERAGED, 256).lowering("cpu") == "native"


def test_short_loops_inside_are_unrolled_for_vectors_of_native_code() -> None:
    # Measured with one thread: 3 layers take 0.07 ms, 17 take 26 ms.
    longer = LAYERED.replace("[3, n", "[17, n").replace("l in 0 .. 3", "l in 0 .. 17")
    short, long = (compiled(text, 300).stages.estimates.native for text in (LAYERED, longer))
    assert long > 2 * (17 / 3) * short
    assert compiled(LAYERED, 500).lowering("cpu") == "native"


def test_what_two_branches_store_is_written_once_by_xla() -> None:
    plain = SCALED.replace("VALUE", "(a[i, j] > 0.0:float32) ? a[i, j] : (r[i] * a[i, j])")
    assert seconds_as_xla(LEAKY, 896) < 1.3 * seconds_as_xla(plain, 896)


def test_elements_that_lie_apart_cost_native_code_their_bytes() -> None:
    pixels = re.sub(r"(x\[i, j, \d\])", r"float32(\1)", GRAY).replace("x: float32", "x: uint8")
    # Measured: 0.07 and 0.18 ns a pixel.
    assert compiled(pixels, 48).stages.estimates.native < compiled(GRAY, 48).stages.estimates.native


def test_elements_picked_under_conditions_are_gathered_by_native_code() -> None:
    # Measured with AVX-512: native code takes 0.9 of the time.
    assert compiled(WARPED, 750).lowering("cpu") == "native"


def test_xla_computes_the_position_of_a_pixel_for_each_of_its_channels() -> None:
    estimates = compiled(ROTATED, 720).stages.estimates
    # Measured: 1.6 and 6.4 ms for 720 x 1280 pixels.
    assert 6.4e-3 / 3 < estimates.xla * 1280 / 720 < 6.4e-3 * 3
    assert estimates.native < estimates.xla


def test_elements_that_a_gradient_scatters_under_masks_cost_xla_more() -> None:
    gradient = adjoint(compiled(WARPED, 750).stages.analysis.kernel)
    estimates = Stages(gradient, "k").estimates
    # Measured: 6.5 and 30 ms. Of native code it sees a third.
    assert 6.5e-3 / 4 < estimates.native < 6.5e-3 * 3
    assert 30e-3 / 3 < estimates.xla < 30e-3 * 3
    assert estimates.native < estimates.xla


def test_the_gradient_of_a_squared_matrix_costs_native_code_two_products() -> None:
    gradient = adjoint(compiled(CENTRED, 64).stages.analysis.kernel)
    measured = 0.045e-3
    assert measured / 3 < Stages(gradient, "k").estimates.native < measured * 3


@pytest.mark.parametrize(
    ("native", "xla", "fusion", "chosen"),
    [
        (0.9, 2.0, 2.0, "native"),
        (1.1, 2.0, 2.0, "xla"),
        (2.2, 2.0, 0.0, "native"),
        (2.4, 2.0, 0.0, "xla"),
    ],
)
def test_half_of_what_fusing_could_save_counts(
    native: float, xla: float, fusion: float, chosen: Form
) -> None:
    costs = Costs(xla=xla, native=native, fusion=fusion)
    assert choose_for_cpu(costs, is_quick=False).lowering == chosen


@pytest.mark.parametrize(("text", "n"), [(ADD, 8), (ADD, 64), (POOL, 64), (PRODUCT, 64), (SUMS, 8)])
def test_what_is_chosen_is_what_the_reason_tells(text: str, n: int) -> None:
    kernel = compiled(text, n)
    assert kernel.lowering("cpu") == kernel.choice("cpu").lowering


def test_a_program_that_travels_keeps_operations_of_xla() -> None:
    assert compiled(ADD, 64).lowering("cpu", travels=True) == "xla"
    assert compiled(IN_ORDER, 64).lowering("cpu", travels=True) == "native"
    assert compiled(SUMS.replace("n - 1", "3"), 4).lowering("cpu", travels=True) == "xla"
    assert compiled(ADD, 64, "native").lowering("cpu", travels=True) == "native"


def test_without_a_compiler_operations_of_xla_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    kernel = compiled(ADD, 64)
    assert kernel.lowering("cpu") == "xla"
    assert kernel.choice("cpu").reason == "XLA operations, as no C++ compiler is installed"
    # In order they would take many times as long; the build then says how to get a compiler.
    assert compiled(IN_ORDER, 64).lowering("cpu") == "native"
    assert compiled(SUMS.replace("n - 1", "3"), 4).lowering("cpu") == "xla"


def sums(a):
    b = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        b[i, 0] = a[i, 0]
        for j in range(a.shape[1] - 1):
            b[i, j + 1] = b[i, j] + a[i, j + 1]
    return b


def test_a_malformed_command_of_the_compiler_is_told_before_a_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", 'g++ "-O2')
    text = "^CXX: expected a command in words of a shell; got 'g\\+\\+ \"-O2': No closing quotation"
    for size in (64, 1024):
        with pytest.raises(BuildError, match=text):
            msops.Custom(sums, func_type="akg")(np.ones((size, size), np.float32))
        with pytest.raises(BuildError, match=text):
            compiled(ADD, size).lowering("cpu")


def test_explain_tells_the_choice() -> None:
    x = np.ones((64, 64), np.float32)
    op = msops.Custom(sums, func_type="akg")
    first = op.explain(x).splitlines()[0]
    assert first == "Custom 'sums' on CPU: native code, as loop j must run in order"
    np.testing.assert_array_equal(op(x), np.cumsum(x, 1))


def picked(a, at):
    b = output_tensor(at.shape, a.dtype)  # noqa: F821
    for i in range(at.shape[0]):
        b[i] = a[at[i]]
    return b


def test_indices_are_checked_if_that_is_asked_for_after_another_form_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, at = np.ones(3, np.float32), np.array([0, 7], np.int32)
    native = msops.Custom(picked, func_type="akg", compile_attrs={"lower": "native"})
    np.testing.assert_array_equal(native(a, at), [1, 1])
    monkeypatch.setenv("MSOPS_DEBUG", "bounds")
    for lower in ({"lower": "xla"}, {}):
        op = msops.Custom(picked, func_type="akg", compile_attrs=lower)
        with pytest.raises(KernelError, match=r"index 0 of 'a' is outside of 0 \.\. 2"):
            op(a, at)


def test_rows_that_begin_at_a_number_take_half_of_their_axis() -> None:
    def seconds(begin: str, end: str) -> float:
        return c_cost.native_seconds(
            parse_kernel(f"""kernel ragged(n: int32[101], x: float32[100, 600]) -> (y) {{
              buffer y: float32[100]
              parallel i in 0 .. 100 {{
                serial k in {begin} .. {end} {{
                  y[i] = y[i] * x[i, k]
                }}
              }}
            }}""")
        )

    assert seconds("0", "n[i]") == pytest.approx(seconds("0", "300"), rel=0.1)
    assert seconds("200", "n[i]") == pytest.approx(seconds("0", "200"), rel=0.1)
    # Parts of one walk, in order or not.
    assert seconds("n[i]", "n[i + 1]") < 0.1 * seconds("0", "n[i]")
    assert seconds("n[n[i]]", "n[n[i] + 1]") == pytest.approx(seconds("n[i]", "n[i + 1]"), rel=0.2)


def test_a_loop_from_a_diagonal_takes_what_its_bounds_say() -> None:
    def seconds(rows: int, i: str, j: str) -> float:
        return c_cost.native_seconds(
            parse_kernel(f"""kernel nested(x: float32[400, 400]) -> (x) {{
              serial k in 0 .. {rows} {{
                serial i in {i} {{
                  serial j in {j} {{
                    x[i, j] = x[i, j] * x[k, k]
                  }}
                }}
              }}
            }}""")
        )

    # A pyramid is a sixth of the cube.
    pyramid = seconds(400, "k .. 400", "k .. i")
    assert pyramid == pytest.approx(seconds(400, "0 .. 400", "0 .. 67"), rel=0.4)
    # Triangles of four rows beside the diagonal.
    assert seconds(100, "(k * 4) .. ((k * 4) + 4)", "(k * 4) .. i") < 0.01 * pyramid
    band = seconds(400, "max(k - 9, 0) .. k", "max(k - 9, 0) .. i")
    assert band == pytest.approx(seconds(400, "0 .. 9", "0 .. 4"), rel=0.2)


def test_a_sum_of_data_dependent_length_takes_the_same_with_proven_indices() -> None:
    def seconds(k: str) -> float:
        return c_cost.native_seconds(
            parse_kernel(f"""kernel sparse(
              first: int32[1001], column: int32[16000], value: float32[16000], x: float32[1000]
            ) -> (y) {{
              buffer y: float32[1000]
              parallel i in 0 .. 1000 {{
                reduction k in first[i] .. first[i + 1] {{
                  y[i] = y[i] + (value[{k}] * x[column[{k}]])
                }}
              }}
            }}""")
        )

    assert seconds("within(int64(k), 0, 15999)") == pytest.approx(seconds("k"), rel=0.5)
