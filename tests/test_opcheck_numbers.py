"""`opcheck` draws numbers at which kernels go wrong: exact ones, fractions, zeros, large ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_opcheck import check_one

from msops import cpp, source

X = np.array([0.1, 0.6, 0.3, 0.9, 0.45], np.float32)
HEAD = """
#include "custom_aot_extra.h"
#include <cmath>
#include <string>
#include <vector>
extern "C" int Kernel(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                      void *stream, void *extra) {
  if (nparam < 2 || std::string(dtypes[0]) != "DTYPE") return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  BODY
  return 0;
}
"""


def kernel(body: str, dtype: str = "float32", **options: Any) -> Any:
    text = HEAD.replace("BODY", body).replace("DTYPE", dtype)
    return cpp(source(text, "Kernel"), **({"out": lambda x, *_: x} | options))


HISTOGRAM = """
  auto *attributes = static_cast<AotExtra *>(extra);
  const int64_t bins = attributes->Attr<int64_t>("bins");
  const float high = attributes->Attr<float>("high");
  const float *x = static_cast<const float *>(params[0]);
  int32_t *y = static_cast<int32_t *>(params[1]);
  for (int64_t b = 0; b < bins; ++b) y[b] = 0;
  for (int64_t i = 0; i < n; ++i)
    if (x[i] >= 0 && x[i] < LIMIT) ++y[std::min(static_cast<int64_t>(x[i] / high * bins), LAST)];
"""


@pytest.mark.parametrize(("last", "verdict"), [("bins", "failed"), ("bins - 1", "passed")])
def test_a_number_equal_to_an_attribute_is_tried(last: str, verdict: str) -> None:
    def out(x: Any, bins: int, high: float) -> Any:
        if bins < 1:
            raise ValueError("expected bins")
        return jax.ShapeDtypeStruct((bins,), jnp.int32)

    op = kernel(
        "#define LIMIT high * 1.0001f\n#define LAST (" + last + ")\n" + HISTOGRAM,
        out=out,
        attrs={"bins": 4, "high": 3.0},
    )
    finding = check_one(op, "values", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("numbers of attributes, and 1: "), finding


SCALE = """
  const KIND by = static_cast<AotExtra *>(extra)->Attr<float>("by");
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < n; ++i) y[i] = by * x[i] * x[i];
"""


@pytest.mark.parametrize(("kind", "verdict"), [("int", "failed"), ("float", "passed")])
def test_a_whole_attribute_of_floats_is_a_fraction_too(kind: str, verdict: str) -> None:
    op = kernel(
        SCALE.replace("KIND", kind),
        out=lambda x, by: x,
        attrs={"by": 2.0},
        bprop=lambda x, by, out, dout: (2 * by * x * dout,),
    )
    finding = check_one(op, "gradient", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("by=1.25: "), finding
