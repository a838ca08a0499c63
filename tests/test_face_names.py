"""What namespaces say of names msops does not have."""

from __future__ import annotations

import pytest

import msops
from msops import nn, ops

INSIDE = "has the names akg, topi and tvm without an import."
LAYERS = "use flax, optax and numpy, or write it with msops.ops."
TRAINING = "save arrays with numpy.savez or orbax."
GENERAL = "dir(msops.ops) lists those that are here."


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        (msops, "akg", INSIDE),
        (msops, "tvm", INSIDE),
        (ops, "AicpuKernel", GENERAL),
        (nn, "Dense", LAYERS),
        (nn, "ReLU", LAYERS),
        (nn, "Conv2d", LAYERS),
        (nn, "Adam", LAYERS),
        (nn, "SoftmaxCrossEntropyWithLogits", LAYERS),
        (msops, "dataset", LAYERS),
        (msops.common, "initializer", LAYERS),
        (ops, "Conv2D", GENERAL),
        (msops, "numpy", "Use jax.numpy on arrays, or Tensors and msops.ops."),
        (msops, "Model", TRAINING),
        (msops, "train", TRAINING),
        (msops, "load_checkpoint", TRAINING),
        (msops, "mint", "the names of another library."),
        (msops, "register_saved_tensors_hooks", "Near names: saved_tensors_hooks."),
        (msops, "MsDispatchMode", "a program that evaluates them in its own way."),
        (msops, "graph", "one operator of the subgraph by msops.Custom."),
        (msops, "kernal", "Near names: kernel."),
        (msops, "ffi_call", 'msops.ffi("library.so:Handler", out=lambda x: x).'),
        (msops, "load_inline", "msops.source(text, name) is a kernel given as text."),
        (msops, "defvjp", "or call op.def_vjp(fwd, bwd)."),
        # A name that is nearly there is a slip, whatever namespace it is in.
        (ops, "TBERegOps", "Near names: TBERegOp."),
        (nn, "SequentialCel", "Near names: SequentialCell."),
    ],
)
def test_a_missing_name_gets_the_advice_that_fits(module, name, advice):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    text = str(caught.value)
    assert text.startswith(f"msops does not have {module.__name__}.{name}. ")
    assert text.endswith(advice)
    assert text.count("Near names") == advice.count("Near names")


def test_the_root_lists_its_names_and_not_its_tools():
    listed = set(dir(msops))
    assert {"Build", "Custom", "cpp", "kernel", "lang", "pyfunc", "source", "testing"} <= listed
    assert not {"TYPE_CHECKING", "missing_names"} & listed


def test_what_advice_names_is_there():
    assert callable(ops.kernel)
    assert callable(ops.where)
    assert callable(ops.select)
