"""What a notebook shows of `Custom.explain` and of opcheck's report."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest

import msops
from msops.testing import opcheck


def text_of(shown: str) -> str:
    """Returns the text of well-formed HTML, without blanks."""
    return re.sub(r"\s", "", "".join(ElementTree.fromstring(f"<div>{shown}</div>").itertext()))


def halves(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = 0.5 * x[i]
    return y


@pytest.mark.parametrize("size", [10, 100_000])
def test_an_explanation_is_the_same_text_with_bars_in_proportion(size: int) -> None:
    op = msops.Custom(halves, func_type="akg")
    explanation = op.explain(jax.ShapeDtypeStruct((size,), jnp.float32))
    shown = explanation._repr_html_()
    for line in explanation.splitlines():
        assert re.sub(r"\s", "", line) in text_of(shown)
    seconds = [value for _, value in explanation.seconds]
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", shown)]
    assert len(widths) == 2
    # Widths have one digit after the point.
    assert widths[0] * seconds[1] == pytest.approx(widths[1] * seconds[0], rel=0.1, abs=0.05)
    assert max(widths) < 100


def test_a_call_that_has_one_form_has_no_bars() -> None:
    explanation = msops.Custom(lambda x: x + 1, lambda x: x, lambda x: x).explain(jnp.ones(3))
    assert explanation.seconds == ()
    assert "%" not in explanation._repr_html_()
    assert text_of(explanation._repr_html_()) == re.sub(r"\s", "", explanation)


def test_a_report_has_every_finding_and_opens_the_failures() -> None:
    wrong = msops.Custom(
        lambda x: x * 2, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (dout,)
    )
    report = opcheck(wrong, jnp.ones(3))
    shown = report._repr_html_()
    assert report["gradient"].verdict == "failed"
    for finding in report:
        for part in (finding.check, finding.summary, *finding.details, finding.advice):
            assert re.sub(r"\s", "", part) in text_of(shown)
    opened = shown.count('<details open="">')
    assert opened == sum(bool(one.details or one.advice) for one in report.failures) > 0
