"""Errors of namespaces for names that they do not have."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Below this, difflib finds relu near kernel and uint near mint.
_NEAR = 0.8

# What scripts ask for that msops leaves out, by a pattern of the qualified name, and what to do.
_LEFT_OUT = {
    r".*\.(akg|topi|tvm)": (
        "A kernel for Custom(func_type='akg') has the names akg, topi and tvm without an import."
    ),
    r"msops\.ffi_call": 'Write msops.ffi("library.so:Handler", out=lambda x: x).',
    r"msops\.(load_inline|cuda|cuda_kernel|load|CppExtension|CUDAExtension)": (
        'Write msops.cpp("file.cc:Function", out=lambda x: x), or "file.cu:Function" for CUDA; '
        "msops.source(text, name) is a kernel given as text."
    ),
    r"msops\.(custom_vjp|custom_jvp|custom_gradient|defvjp|def_vjp|def_jvp|register_autograd)": (
        "Pass bprop= to msops.cpp, msops.pyfunc or msops.kernel, or call op.def_vjp(fwd, bwd)."
    ),
    r"msops\.numpy": "Use jax.numpy on arrays, or Tensors and msops.ops.",
    r"msops\.(train(\..*)?|Model|(save|load)_checkpoint|load_param_into_net)": (
        "msops has no training loop and no checkpoints: write the loop with value_and_grad and "
        "optax, and save arrays with numpy.savez or orbax."
    ),
    r"msops\.mint(\..*)?": (
        "Use msops.ops on Tensors, or jax.numpy on arrays: mint has the same functions under the "
        "names of another library."
    ),
    r"msops\.(.*\.)?(MsDispatchMode|_?ms_dispatch\w*)": (
        "JAX has no dispatch of operators to intercept: jax.make_jaxpr(f)(x) lists those of a "
        "function, for a program that evaluates them in its own way."
    ),
    r"msops\.(.*\.)?register_(custom_(pass|backend)|op_(infer|wrapper))|msops\.graph": (
        "The program is XLA's, not MindSpore's graph: rewrite the function as a jaxpr "
        "(jax.make_jaxpr), or make one operator of the subgraph by msops.Custom."
    ),
    r"msops\.nn\..*|msops\.dataset|.*\binitializer": (
        "msops has no layers, losses, optimizers, initializers or datasets: use flax, optax and "
        "numpy, or write it with msops.ops."
    ),
}


ASKED_IN_VAIN: set[str] = set()
"""The names that namespaces of msops were asked for and do not have; `msops run` reports them."""


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Returns the public names that `name` may have been meant as."""
    public = {known for known in names if not known.startswith("_")}
    return difflib.get_close_matches(name, public, n=3, cutoff=_NEAR)


def describe_missing(module: str, name: str, names: Iterable[str]) -> str:
    """Returns the message for a missing attribute: that msops lacks it, and what is there."""
    asked = f"{module}.{name}"
    near = near_names(name, names)
    if near:
        advice = f"Near names: {', '.join(near)}."
    else:
        advice = next(
            (text for pattern, text in _LEFT_OUT.items() if re.fullmatch(pattern, asked, re.I)),
            "It has MindSpore's custom operators and the names their scripts use most; "
            f"dir({module}) lists those that are here.",
        )
    return f"msops does not have {asked}. {advice}"


def missing_names(module: str, later: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a namespace of msops.

    Args:
      module: the namespace.
      later: names that are imported when first asked for, each with the module that has it or is
        it.
    """
    later = later or {}

    def missing(name: str) -> Any:
        if name in later:
            found = importlib.import_module(later[name])
            value = found if later[name] == f"{module}.{name}" else getattr(found, name)
            setattr(sys.modules[module], name, value)
            return value
        if not name.startswith("_"):
            ASKED_IN_VAIN.add(f"{module}.{name}")
        names = [*vars(sys.modules[module]), *later]
        raise AttributeError(describe_missing(module, name, names))

    return missing
