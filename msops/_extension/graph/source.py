"""The C++ source that gives msops the operators of a module.

It names the infer object of each operator of op_def, as MindSpore's own generated source does, so
one that is missing is an undefined symbol.
"""

from __future__ import annotations

from collections.abc import Sequence

ENTRY = "msops_graph_entry"
"""The function of the module that returns what calls its operators."""

_TEXT = """// Written by msops: the graph operators of a module.
#include "ms_extension/api.h"
#include "msops_extension/graph/entry.h"

namespace mindspore::ops {{
{references}
}}

extern "C" __attribute__((visibility("default"))) PyObject* {entry}() {{
  return msops::extension::MakeGraphEntry({{{rows}}});
}}
"""


def write_source(names: Sequence[str]) -> str:
    """Returns the source for operators of these names."""
    return _TEXT.format(
        references="\n".join(f"extern OpFuncImpl& {_infer(name)};" for name in names),
        entry=ENTRY,
        rows=", ".join(f'{{"{name}", &mindspore::ops::{_infer(name)}}}' for name in names),
    )


def _infer(name: str) -> str:
    return f"gCustom_{name}FuncImpl"
