"""`JitConfig`: how MindSpore's compiler is set for one Cell. XLA has no counterpart."""

from __future__ import annotations

from typing import Any

from msops.errors import ArgumentValueError

_CHOICES = {
    "jit_level": ("", "O0", "O1", "O2"),
    "exc_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("", "STRICT", "COMPATIBLE", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"),
    "infer_boost": ("", "on", "off"),
}


class JitConfig:
    """Settings of a compiler for `nn.Cell.set_jit_config`, without effect here.

    Args:
      jit_level: "O0", "O1", "O2", or "".
      exc_mode: "auto", "sink" or "no_sink".
      jit_syntax_level: "STRICT", "COMPATIBLE", "LAX", or "".
      debug_level: "RELEASE" or "DEBUG".
      infer_boost: "on", "off", or "".
      **kwargs: further settings.

    Raises:
      ArgumentValueError: a setting has a value that MindSpore refuses.

    Source: MindSpore 2.7.2, ``mindspore.JitConfig``.
    """

    def __init__(
        self,
        jit_level: str = "",
        exc_mode: str = "auto",
        jit_syntax_level: str = "",
        debug_level: str = "RELEASE",
        infer_boost: str = "off",
        **kwargs: Any,
    ):
        given = {
            "jit_level": jit_level,
            "exc_mode": exc_mode,
            "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level,
            "infer_boost": infer_boost,
        }
        for name, value in given.items():
            if value not in _CHOICES[name]:
                choices = ", ".join(map(repr, _CHOICES[name]))
                raise ArgumentValueError.explained(
                    "JitConfig",
                    f"expected {name} to be one of {choices}; got {value!r}",
                    "Results do not depend on it: it may be left out.",
                )
        self.jit_config_dict: dict[str, Any] = {**kwargs, **given}
