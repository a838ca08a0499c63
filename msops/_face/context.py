"""Execution mode and device of the process, as MindSpore's context holds them."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msops._base import config
from msops._base.logging import warn_once
from msops._face.context_keywords import PARALLEL, WITHOUT_EFFECT
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError

GRAPH_MODE = 0
PYNATIVE_MODE = 1

TARGETS = ("CPU", "GPU", "Ascend")

GATHER_POLICIES = ("warn", "raise", "allow")

_log = logging.getLogger("msops.context")


class _State:
    """What `set_context` changes; one per process."""

    def __init__(self) -> None:
        self.mode = PYNATIVE_MODE
        self.device_target: str | None = None
        self.device_id = 0
        self.device_is_fixed = False
        self.runs_script = False
        self.host_memory_pool = False
        self.implicit_gather = "warn"
        self.ascend_was_announced = False
        self.without_effect: dict[str, Any] = {}
        self.parallel: dict[str, Any] = {}


_state = _State()


def _check_mode(who: str, mode: Any) -> int:
    if isinstance(mode, bool) or mode not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ArgumentValueError.explained(
            who,
            f"expected mode GRAPH_MODE (0) or PYNATIVE_MODE (1); got {mode!r}",
            "Pass msops.GRAPH_MODE or msops.PYNATIVE_MODE.",
        )
    return int(mode)


def _check_target(who: str, target: Any) -> str:
    if target not in TARGETS:
        raise ArgumentValueError.explained(
            who,
            f"expected device_target {', '.join(TARGETS)}; got {target!r}",
            "Pass one of these names.",
        )
    return str(target)


def _check_device_id(who: str, device_id: Any) -> int:
    if isinstance(device_id, bool) or not isinstance(device_id, int):
        raise ArgumentTypeError.explained(
            who, f"expected device_id int; got {device_id!r}", "Pass 0, 1, ..."
        )
    if device_id < 0:
        raise ArgumentValueError.explained(
            who, f"expected device_id at least 0; got {device_id}", "Pass 0, 1, ..."
        )
    return device_id


def _check_pool(who: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentTypeError.explained(
            who,
            f"expected host_memory_pool bool; got {value!r}",
            "Pass True to keep the memory of large results, False to return it.",
        )
    return value


def _check_policy(who: str, value: Any) -> str:
    if value not in GATHER_POLICIES:
        raise ArgumentValueError.explained(
            who,
            f"expected implicit_gather {', '.join(map(repr, GATHER_POLICIES))}; got {value!r}",
            "Pass 'raise' to have an error where an op would gather an array that is divided "
            "over devices.",
        )
    return str(value)


# The keywords with an effect, and what checks their values.
_WITH_EFFECT: dict[str, Callable[[str, Any], Any]] = {
    "mode": _check_mode,
    "device_target": _check_target,
    "device_id": _check_device_id,
    "host_memory_pool": _check_pool,
    "implicit_gather": _check_policy,
}


def _keep_large_blocks(who: str, is_kept: bool) -> None:
    # Here, as `import msops` must be quick.
    from msops._base.host_memory import keep_large_blocks

    keep_large_blocks(who, is_kept)
    _state.host_memory_pool = is_kept


def _unknown(who: str, name: str) -> ArgumentValueError:
    return _misspelt(
        who,
        name,
        [*_WITH_EFFECT, *WITHOUT_EFFECT],
        f"Keywords with an effect are {', '.join(_WITH_EFFECT)}; MindSpore's others are accepted.",
    )


def _misspelt(who: str, name: str, known: Sequence[str], remedy: str) -> ArgumentValueError:
    near = difflib.get_close_matches(name, known, n=3)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return ArgumentValueError.explained(who, f"{name!r} is no context keyword", f"{remedy}{hint}")


def set_context(**keywords: Any) -> None:
    """Sets the execution mode and the device of the process.

    Corresponds to ``mindspore.set_context``. Keywords of MindSpore that steer its own compiler or
    memory pool are accepted, kept for `get_context`, and do nothing; a debug line of the logger
    ``msops.context`` says why.

    Args:
      keywords: ``mode`` (GRAPH_MODE or PYNATIVE_MODE), ``device_target`` ("CPU", "GPU" or
        "Ascend"), ``device_id`` (int, at least 0). A device is selected when it is first used.
        "Ascend" means JAX's default device. ``host_memory_pool`` (bool, of msops alone):
        whether the process keeps the memory of freed results on the CPU and uses it for new ones;
        large results take a third of the time, and the process never shrinks.
        ``implicit_gather`` (of msops alone): what happens when a program gathers an input that is
        divided over devices because an op needs all of it (see `Custom`, ``sharding``): "warn",
        once per op, "raise" or "allow".

    Raises:
      ArgumentValueError: a keyword is unknown or a value is none of the allowed ones.
      ArgumentTypeError: ``device_id`` is no int, or ``host_memory_pool`` no bool.
      BackendError: the C library is not glibc, which ``host_memory_pool`` needs.

    Example:
      >>> import msops as ms
      >>> ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
      >>> ms.get_context("device_target")
      'CPU'

    Source: MindSpore 2.7.2, mindspore/context.py, set_context.
    """
    for name in keywords:
        if name not in _WITH_EFFECT and name not in WITHOUT_EFFECT:
            raise _unknown("set_context", name)
    # All values are checked before the first one is set: a failed call changes nothing.
    checked = {
        name: check("set_context", keywords.pop(name))
        for name, check in _WITH_EFFECT.items()
        if name in keywords
    }
    is_kept = checked.pop("host_memory_pool", _state.host_memory_pool)
    if is_kept != _state.host_memory_pool:
        _keep_large_blocks("set_context", is_kept)
    for name, value in checked.items():
        if not (name.startswith("device_") and _state.device_is_fixed):
            setattr(_state, name, value)
    _state.without_effect.update(keywords)
    for name in keywords:
        _log.debug("set_context: %s does nothing here: %s", name, WITHOUT_EFFECT[name])


def get_context(keyword: str) -> Any:
    """Returns what `set_context` set, or the default.

    Corresponds to ``mindspore.get_context``. ``device_target`` is the one of JAX's default device
    until a script sets it; a keyword without effect that was never set gives None.

    Args:
      keyword: a keyword of `set_context`.

    Raises:
      ArgumentValueError: the keyword is unknown.

    Source: MindSpore 2.7.2, mindspore/context.py, get_context.
    """
    if keyword == "device_target" and _state.device_target is None:
        import jax

        return "CPU" if jax.default_backend() == "cpu" else "GPU"
    if keyword in _WITH_EFFECT:
        return getattr(_state, keyword)
    if keyword in WITHOUT_EFFECT:
        return _state.without_effect.get(keyword)
    raise _unknown("get_context", keyword)


def set_auto_parallel_context(**keywords: Any) -> None:
    """Accepts MindSpore's settings for training on several devices; the script runs on one.

    Corresponds to ``mindspore.set_auto_parallel_context``. To divide arrays over devices, use
    `jax.sharding` and ``Custom(sharding=)``.

    Args:
      keywords: those of MindSpore. A ``parallel_mode`` other than "stand_alone" warns in the log.

    Raises:
      ArgumentValueError: a keyword is unknown.

    Source: MindSpore 2.7.2, mindspore/context.py, set_auto_parallel_context.
    """
    who = "set_auto_parallel_context"
    for name in keywords:
        if name not in PARALLEL:
            raise _misspelt(who, name, sorted(PARALLEL), "MindSpore's keywords are accepted.")
    if keywords.get("parallel_mode", "stand_alone") != "stand_alone":
        warn_once(
            _log,
            f"{who}: parallel_mode {keywords['parallel_mode']!r} has no effect: the script runs on "
            "one device. Divide arrays by jax.sharding, and ops by Custom(sharding=).",
        )
    _state.parallel.update(keywords)
    for name in keywords:
        _log.debug("%s: %s does nothing here", who, name)


def get_auto_parallel_context(keyword: str) -> Any:
    """Returns what `set_auto_parallel_context` set; None if it did not.

    Raises:
      ArgumentValueError: the keyword is unknown.

    Source: MindSpore 2.7.2, mindspore/context.py, get_auto_parallel_context.
    """
    if keyword not in PARALLEL:
        who = "get_auto_parallel_context"
        raise _misspelt(who, keyword, sorted(PARALLEL), "Pass one of MindSpore's keywords.")
    return _state.parallel.get(keyword, "stand_alone" if keyword == "parallel_mode" else None)


def reset_auto_parallel_context() -> None:
    """Forgets what `set_auto_parallel_context` set.

    Source: MindSpore 2.7.2, mindspore/context.py, reset_auto_parallel_context.
    """
    _state.parallel.clear()


class ParallelMode:
    """The names of MindSpore's ways to train on several devices.

    Source: MindSpore 2.7.2, mindspore/context.py, ParallelMode.
    """

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Sets the device of the process.

    Corresponds to ``mindspore.set_device``.

    Args:
      device_target: "CPU", "GPU" or "Ascend" (JAX's default device).
      device_id: number of the device, from 0; None keeps the one that is set.

    Raises:
      ArgumentValueError, ArgumentTypeError: see `set_context`.

    Source: MindSpore 2.7.2, mindspore/device_manager.py, set_device.
    """
    target = _check_target("set_device", device_target)
    number = None if device_id is None else _check_device_id("set_device", device_id)
    if not _state.device_is_fixed:
        _state.device_target = target
        _state.device_id = _state.device_id if number is None else number


def fix_device(device_target: str) -> None:
    """Selects a target that no later `set_context` or `set_device` changes (``run --device``)."""
    _state.device_target = _check_target("msops run --device", device_target)
    _state.device_id = 0
    _state.device_is_fixed = True


def enter_script() -> None:
    """Records that the process runs a script of MindSpore's (``msops run``)."""
    _state.runs_script = True


def runs_script() -> bool:
    """Returns whether the process runs a script of MindSpore's, where an op returns Tensors."""
    return _state.runs_script


def implicit_gather() -> str:
    """Returns what happens where an op gathers an array, one of `GATHER_POLICIES`."""
    return _state.implicit_gather


def is_graph_mode() -> bool:
    """Returns whether Cells and gradients are compiled as a whole."""
    return _state.mode == GRAPH_MODE


def device() -> Any | None:
    """Returns the `jax.Device` the script selected, or None for JAX's default.

    Raises:
      BackendError: there is no such device.
    """
    target = _state.device_target
    if target is None:
        return None
    if target == "Ascend":
        announce_ascend()
        return None
    import jax

    try:
        devices = jax.devices(target.lower())
    except RuntimeError as error:
        raise BackendError.explained(
            f"device_target={target!r}",
            f"JAX has no {target} here",
            "Run the script with `msops run --device CPU script.py`, or set device_target='CPU'.",
            [str(error)],
        ) from None
    if _state.device_id >= len(devices):
        raise BackendError.explained(
            f"device_target={target!r}",
            f"expected device_id below {len(devices)}; got {_state.device_id}",
            f"JAX has {len(devices)} such device(s) here.",
        )
    return devices[_state.device_id]


def announce_ascend() -> None:
    """Warns once that what is written for Ascend runs elsewhere, unless ``--device`` says where."""
    if not _state.ascend_was_announced and not _state.device_is_fixed:
        _state.ascend_was_announced = True
        warnings.warn(
            "msops: there is no Ascend device under JAX; kernels written for it run on JAX's "
            "default device, guarded by the op info registered for Ascend.",
            stacklevel=_level_of_script(),
        )


def _level_of_script() -> int:
    """Returns the ``stacklevel`` by which the caller's warning names the line of the script."""
    own = (os.path.dirname(os.path.dirname(__file__)) + os.sep, contextlib.__file__)
    level = 1
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(own):
        level += 1
        frame = frame.f_back
    return level


@contextlib.contextmanager
def scope() -> Iterator[None]:
    """The setting the MindSpore face runs in: 64-bit types, and the selected device.

    Every entry that runs user code or kernels on Tensors enters it (Cell, gradients, Custom);
    JAX's global flags stay as they are.
    """
    import jax

    selected = device()
    if selected is None:
        with jax.enable_x64(True):
            yield
    else:
        with jax.enable_x64(True), jax.default_device(selected):
            yield


if config.host_memory_pool():
    _keep_large_blocks("MSOPS_HOST_MEMORY_POOL", True)
