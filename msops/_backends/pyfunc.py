"""pyfunc: a Python function on numpy arrays, run on the host through `jax.pure_callback`.

Corresponds to ``mindspore.ops.Custom(func_type="pyfunc")``, 2.7.2.
"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._backend import Opaque, Options, Request
from msops._fingerprint import by_live_value
from msops._host_callback import call_on_host
from msops._op_info import OpInfo
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    InferenceTypeError,
    InferenceValueError,
    KernelError,
    MsopsError,
    explain,
)

_READ_ONLY_ADVICE = (
    "Its inputs are read-only views: write to a copy, x.copy(), or pass Custom(..., writable=True)."
)


class PyfuncKernel:
    """A Python function; equal to another only if both behave alike at every call."""

    __slots__ = ("_key", "function")

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self._key = by_live_value(function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PyfuncKernel) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class PyfuncBackend(Opaque):
    """Lowers to a host callback on every platform; guarded by the "CPU" rows (decision 7)."""

    func_type = "pyfunc"
    platforms: tuple[str, ...] = seam.PLATFORMS
    may_have_no_outputs = True
    runs_on_host = True

    def read(self, func: Any, options: Options, who: str) -> PyfuncKernel:
        """Accepts any callable."""
        if not callable(func):
            raise ArgumentTypeError(
                explain(
                    who,
                    f"expected a function for func_type 'pyfunc'; got {type(func).__name__}",
                    "Pass a Python function over numpy arrays; a str such as './add.cc:Add' is "
                    "func_type='aot'.",
                )
            )
        for option, owner in (
            ("host", "aot"),
            ("cxx11_abi", "aot"),
            ("reentrant", "aot"),
            ("inplace", "aot"),
            ("dynamic_outputs", "aicpu"),
        ):
            if getattr(options, option) != getattr(Options, option):
                raise ArgumentValueError(
                    explain(
                        who,
                        f"option {option} is for func_type {owner!r}; this op is a pyfunc",
                        f"Leave {option} out.",
                    )
                )
        # The decorators that carry op info change nothing of the function.
        func = inspect.unwrap(func, stop=lambda wrapper: not hasattr(wrapper, "reg_info"))
        return PyfuncKernel(func)

    def resolve(self, source: PyfuncKernel, options: Options, who: str) -> Hashable:
        """Returns the kernel: a function is ready as it is."""
        return source

    def infer(
        self,
        kernel: PyfuncKernel,
        half: str,
        request: Request,
        infos: Sequence[OpInfo],
        who: str,
    ) -> NoReturn:
        """Refuses: a Python function is not asked before it runs."""
        raise ArgumentValueError(
            explain(
                who,
                f"out_{half} is required for func_type 'pyfunc'; got None",
                f"Pass out_{half} as a value or as a function of the inputs', e.g. lambda x: x.",
            )
        )

    def guard_target(self, platform: str) -> str:
        """Returns "CPU": the function runs there whatever the platform."""
        return "CPU"

    def lower(
        self, kernel: PyfuncKernel, request: Request, ctx: Any, operands: Sequence[Any]
    ) -> Any:
        """Lowers to `jax.pure_callback`, or to an effectful callback."""
        outputs = request.outputs
        run = HostFunction(kernel.function, request)
        has_effect = request.options.stateful or not outputs.structs

        def program(*arrays: Any) -> Sequence[Any]:
            return call_on_host(run, outputs.structs, arrays, has_effect)

        return seam.lower_as(ctx, program, operands)


@dataclasses.dataclass(frozen=True)
class HostFunction:
    """The function as the host callback calls it: arrays in, checked arrays out."""

    function: Callable[..., Any]
    request: Request

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        request = self.request
        # The MindSpore face promises private copies, the JAX face read-only views (decision 6).
        writable = request.options.writable or request.call.tensors
        views = [np.array(array) if writable else _read_only(array) for array in arrays]
        arguments = [*request.call.group(views), *(value for _, value in request.attributes)]
        try:
            result = self.function(*arguments)
        except MsopsError:
            raise
        except BaseException as error:  # SystemExit too: XLA would report it without the op
            raise KernelError(
                explain(
                    request.who,
                    f"its function raised {type(error).__name__}: {error}",
                    _READ_ONLY_ADVICE
                    if "read-only" in str(error)
                    else "Mend the function; it was called with "
                    f"{', '.join(_describe(value) for value in arguments) or 'nothing'}.",
                    [_traceback_text(error)],
                )
            ) from error
        return self._check(result)

    def _check(self, result: Any) -> list[np.ndarray]:
        outputs = self.request.outputs
        if not outputs.structs:
            return []
        results = result if outputs.is_tuple else (result,)
        if not isinstance(results, (tuple, list)) or len(results) != len(outputs.structs):
            several = isinstance(results, (tuple, list))
            got = f"{len(results)} values" if several else _describe(result)
            raise InferenceValueError(
                explain(
                    self.request.who,
                    f"expected a tuple of {len(outputs.structs)} outputs, as out_shape says; "
                    f"its function returned {got}",
                    "Return one array per output, or mend out_shape and out_dtype.",
                )
            )
        return [
            _check_output(value, struct, index, self.request.who)
            for index, (value, struct) in enumerate(zip(results, outputs.structs, strict=True))
        ]


def _traceback_text(error: BaseException) -> str:
    """Returns the traceback from the author's function on."""
    own = error.__traceback__.tb_next if error.__traceback__ else None
    return "".join(traceback.format_exception(type(error), error, own)).rstrip()


def _read_only(array: Any) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _check_output(value: Any, struct: jax.ShapeDtypeStruct, index: int, who: str) -> np.ndarray:
    array = np.asarray(value)
    # A Python number has no width of its own: it takes the declared one if that can hold it.
    weak = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    if weak and _holds(struct.dtype, value):
        array = array.astype(struct.dtype)
    if array.dtype != struct.dtype:
        forgotten = " (did it forget to return?)" if value is None else ""
        shown = "None" if value is None else f"{value!r}" if weak else f"{array.dtype}"
        raise InferenceTypeError(
            explain(
                who,
                f"expected dtype {struct.dtype} for output {index}, as out_dtype says; its "
                f"function returned {shown}{forgotten}",
                f"Return result.astype(np.{struct.dtype}), or mend out_dtype.",
            )
        )
    if array.shape != struct.shape:
        raise InferenceValueError(
            explain(
                who,
                f"expected shape {struct.shape} for output {index}, as out_shape says; its "
                f"function returned {array.shape}",
                "Return an array of that shape, or mend out_shape.",
            )
        )
    return np.asarray(array, struct.dtype, order="C")


def _holds(dtype: np.dtype, value: complex) -> bool:
    """Tells whether a Python number can be an entry of `dtype`; a float may be rounded."""
    if isinstance(value, int) and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return bool(bounds.min <= value <= bounds.max)
    if not np.can_cast(np.asarray(value).dtype, dtype, "same_kind"):
        return False
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype)
    return bool(np.isfinite(rounded) == np.isfinite(value))


def _describe(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)
