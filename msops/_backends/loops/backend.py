"""akg and hybrid: loop nests written in Python, compiled by msops's own loop compiler.

Corresponds to ``mindspore.ops.Custom(func_type="akg" | "hybrid")``, 2.7.2, which hands them to AKG.
A call is specialised for its shapes, dtypes and attributes. It becomes JAX operations that XLA
fuses, or native code: C on the CPU, CUDA on a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._backends.loops.gradients import pull_back
from msops._backends.loops.kernels import Kernels, LoopKernel, case_of, compile_case, make_kernel
from msops._backends.loops.timing import time_forms
from msops._base.dtypes import as_dtype
from msops._base.logging import warn_once
from msops._calls.library_call import AotCall
from msops._calls.lowering import lower_call
from msops._op.backend import Backend, Division, Trial
from msops._op.definition import Definition
from msops._op.inference import Inference
from msops._op.process_call import ProcessCall
from msops._op.request import Options, Request
from msops._op.traced import Function, Traced
from msops._op_info import OpInfo
from msops._primitive.batching import batch_sequentially, over_batch
from msops._primitive.programs import share_programs
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError, InferenceValueError

if TYPE_CHECKING:
    from msops._loops.choice import Form
    from msops._loops.specialisation import Specialisation, Stages

Aliases: TypeAlias = tuple[tuple[int, int], ...]

_LOWERINGS: tuple[Form, ...] = ("xla", "native")

_log = logging.getLogger("msops.loops")


class LoopBackend(Backend[LoopKernel, Kernels]):
    """Runs wherever XLA does; guarded by the rows of the platform lowered for."""

    own_options: tuple[str, ...] = ("inplace",)
    has_attributes_by_default = True
    compile_attrs: tuple[str, ...] = ("lower",)
    compiles_per_shape = True
    has_trials = True
    hides_inputs = True

    def __init__(self, func_type: Literal["akg", "hybrid"]):
        self.func_type: str = func_type
        self._dialect: Literal["akg", "hybrid"] = func_type

    def read(self, func: Any, options: Options, who: str) -> LoopKernel:
        """Reads the function's source and checks what needs no shapes."""
        # Here, as `import msops` loads none of the compiler.
        from msops._loops.frontends.program import read_kernel

        with _depth_reported(who):
            program = read_kernel(func, self._dialect, who)
        return make_kernel(self.func_type, _read_lower(func, options, who), program)

    def signature(self, source: LoopKernel) -> inspect.Signature | None:
        """Returns the function's own; None if it takes all inputs as one list."""
        program = source.program
        return None if program.kind == "ir_builder" else inspect.signature(program.func)

    def infer(
        self, kernel: Kernels, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Asks the loops."""
        with _depth_reported(who):
            outputs = compile_case(kernel, case_of(request)).stages.kernel.outputs
        answers = tuple(
            output.shape if half == "shape" else as_dtype(output.dtype) for output in outputs
        )
        return answers[0] if len(answers) == 1 else answers

    def trace(self, kernel: Kernels, request: Request) -> Traced:
        """Returns the raised loops; with adjoint loops for native code, and for loops in order.

        Of loops in order JAX's own gradient would be slow: it adds a whole array of zeros for each
        element that an iteration reads, and keeps the results of all operations of all iterations.
        Equal elements would share the slope of an extreme in other parts than in adjoint loops.

        Once the clock has timed both forms of a call, its gradient may change as well: from adjoint
        loops to that of the operations, or back.
        """
        compiled = _checked(kernel, request)
        function = _with_axes(compiled, request)

        def hidden(*arrays: Any) -> Sequence[Any]:
            return function(*map(seam.unknown, arrays))

        has_own_gradient = compiled.stages.is_order_bound or compiled.stages.keeps_extremes
        if not has_own_gradient and compiled.lowering("cpu") == "xla":
            return Traced(hidden)
        return Traced(hidden, functools.partial(pull_back, self, kernel, request))

    def call(self, kernel: Kernels, request: Request) -> ProcessCall | None:
        """Returns the call of generated C or CUDA; None if XLA operations run."""
        compiled = _checked(kernel, request)
        if compiled.lowering(request.platform) == "xla":
            return None
        return _call_of(compiled, request, _aliases(compiled, request))

    def lower(
        self,
        kernel: Kernels,
        request: Request,
        lowering: seam.Lowering,
        operands: Sequence[Any],
    ) -> Sequence[Any]:
        """Lowers to XLA operations, or to a call of native code."""
        with _depth_reported(request.who):
            return self._lower(kernel, request, lowering, operands)

    def _lower(
        self,
        kernel: Kernels,
        request: Request,
        lowering: seam.Lowering,
        operands: Sequence[Any],
    ) -> Sequence[Any]:
        compiled = _checked(kernel, request)
        # Adjoint loops read zeros that nothing has written, on purpose: no user needs a warning.
        for warning in compiled.stages.warnings if isinstance(kernel, LoopKernel) else ():
            warn_once(_log, warning)
        travels = lowering.is_exported or lowering.is_partitioned
        chosen = compiled.lowering(request.platform, travels)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s: %s", request.who, compiled.choice(request.platform, travels).reason)
        aliases = _aliases(compiled, request)
        if chosen == "xla":
            return seam.lower_as(lowering, _with_axes(compiled, request), operands)
        if not all(isinstance(size, int) for size in request.call.batch):
            return seam.lower_as(lowering, _one_by_one(request), operands)
        call = _call_of(compiled, request, aliases)
        return lower_call(call, request.has_effect, request.who, lowering, operands)

    def trial(self, kernel: Kernels, request: Request) -> Trial | None:
        """Returns the trial that times both forms; None where the choice needs no clock."""
        if not isinstance(kernel, LoopKernel) or request.platform != "cpu":
            return None
        compiled = _checked(kernel, request)
        if kernel.lower is not None or not compiled.stages.is_worth_timing:
            return None
        return functools.partial(_try_forms, self, kernel, compiled, request)

    def division(self, kernel: Kernels, request: Request) -> Division:
        """Returns "operations" if XLA's run, and "parts" of native code."""
        # Without a sharding rule native code cannot be divided: then XLA's operations go first.
        travels = request.options.sharding is None
        is_raised = _checked(kernel, request).lowering(request.platform, travels) == "xla"
        return "operations" if is_raised else "parts"

    def cost(self, kernel: Kernels, request: Request) -> Mapping[str, float] | None:
        """Counts the loops' operations; XLA does, unless it runs them in an order."""
        compiled = _checked(kernel, request)
        if compiled.lowering(request.platform) == "xla" and not compiled.stages.is_order_bound:
            return None
        whole = compiled.stages.batched(request.call.batch, _mapped(request))
        return {kind: float(count) for kind, count in whole.operations.items()}

    def explain(self, kernel: Kernels, request: Request) -> str:
        """Returns what the loops became, and why."""
        return _checked(kernel, request).explanation(request.who, request.platform)

    def stages(self, kernel: Kernels, request: Request) -> Mapping[str, Callable[[], str]]:
        """Returns the kernel's text from loop IR to C and CUDA."""
        return _checked(kernel, request).stages.texts()


@contextlib.contextmanager
def _depth_reported(who: str) -> Iterator[None]:
    """Turns Python's error for a tree that is too deep into one that says what to do."""
    try:
        yield
    except RecursionError:
        raise BuildError.explained(
            who,
            f"expected a kernel that Python can walk within {sys.getrecursionlimit()} calls; got "
            "one nested deeper: an expression of several hundred operations, or a loop with more "
            "than a hundred variables",
            "Split the expression over several statements, or write a loop; keep variables that "
            "are alike in an array.",
        ) from None


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return LoopBackend("hybrid" if func_type == "hybrid" else "akg")


def _try_forms(
    backend: LoopBackend,
    kernel: LoopKernel,
    compiled: Specialisation,
    request: Request,
    arrays: Sequence[Any],
) -> None:
    """Times both forms on the arrays of a call, and records what they took."""
    calls: dict[str, Callable[[], Any]] = {}
    for form in _LOWERINGS:
        forced = dataclasses.replace(kernel, lower=form)
        definition = Definition(
            name=request.op,
            backend=backend,
            kernel=forced,
            inference=Inference(None, None),
            bprop=None,
            options=request.options,
            infos=request.infos,
            prim_attrs=request.prim_attrs,
        )
        program = share_programs(definition).bound(request.call)
        calls[form] = functools.partial(program, arrays)
    seconds = None
    # The arrays may be constants of a function that is being traced, or jit may be disabled.
    # jax.ensure_compile_time_eval would also compute the constants of the programs while these are
    # lowered, one at a time.
    with (
        jax.core.eval_context(),
        jax.disable_jit(False),
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        if all(len(jnp.asarray(array).devices()) == 1 for array in arrays):
            # The C compiler runs while XLA compiles; if it fails, the call raises its error.
            beside.submit(lambda: compiled.stages.native)
            try:
                seconds = time_forms(calls)
            except BuildError as error:
                _log.warning("%s: its native code was not timed: %s", request.who, error)
    compiled.stages.record_times(seconds)


def _aliases(compiled: Specialisation, request: Request) -> Aliases:
    """Returns the pairs that ``inplace`` names; each must be a parameter that the kernel returns.

    Another output may not share the memory of an input: the compiler is free to write elements of
    the output before it reads those of the input. A parameter that the kernel writes is read and
    written in the order of the loops.
    """
    pairs = request.aliases()
    kernel = compiled.stages.kernel
    for index, output in pairs:
        parameter, result = kernel.parameters[index].name, kernel.results[output]
        if parameter != result:
            raise ArgumentValueError.explained(
                request.who,
                f"inplace names output {output} and parameter {parameter!r}; the kernel "
                f"returns {result!r} there, an array of its own",
                f"Have the loops write to {parameter!r} and return it.",
            )
    return pairs


def _one_by_one(request: Request) -> Function:
    """Returns a call over a batch of symbolic size: native code is made for numbers."""
    size, *inner = request.call.batch
    element = dataclasses.replace(request.call, batch=tuple(inner))
    axes = [0 if struct.shape[0] == size else None for struct in request.inputs]

    def program(*flat: Any) -> Sequence[Any]:
        arrays = [
            array[0] if axis is None else array for array, axis in zip(flat, axes, strict=True)
        ]
        return batch_sequentially(request.bind, element, arrays, axes)[0]

    return program


def _call_of(compiled: Specialisation, request: Request, aliases: Aliases) -> ProcessCall:
    """Returns the call of native code, for the axes that vmap added, too."""
    whole = compiled.stages.batched(request.call.batch, _mapped(request))
    if request.platform != "cpu":
        # Here, as `import msops` loads none of the compiler.
        from msops._calls.cuda_call import CudaCall

        return CudaCall(request.op, whole.kernel.name, whole.cuda, aliases)
    native = whole.in_place.native if aliases else whole.native
    return AotCall(
        op=request.op,
        kernel_name=native.symbol,
        library=native.library,
        aliases=aliases,
        workspaces=native.workspaces,
    )


def _read_lower(func: Any, options: Options, who: str) -> Form | None:
    """Returns what is forced: by the op, or by the decorator's ``compile_attrs``."""
    decorated = _decorated_attrs(func, who)
    lower = dict(options.compile_attrs).get("lower", decorated.get("lower"))
    if lower is not None and lower not in _LOWERINGS:
        raise ArgumentValueError.explained(
            who,
            f"expected compile_attrs['lower'] to be 'xla' or 'native'; got {lower!r}",
            "Leave it out to let the estimate of costs choose.",
        )
    return lower


def _decorated_attrs(func: Any, who: str) -> Mapping[str, Any]:
    """Returns the ``compile_attrs`` of MindSpore's decorator; other functions' are their own."""
    if getattr(func, "ms_kernel_flag", False) is not True:
        return {}
    text = getattr(func, "compile_attrs", "{}")
    try:
        attrs = json.loads(text)
    except (TypeError, ValueError):
        attrs = None
    if not isinstance(attrs, dict):
        raise ArgumentTypeError.explained(
            who,
            "expected the attribute compile_attrs of the kernel to be JSON text of a dict, as "
            f"the decorator writes it; got {text!r}",
            "Pass it to the decorator: @ops.kernel(compile_attrs={'lower': 'native'}).",
        )
    return attrs


def _checked(kernel: Kernels, request: Request) -> Specialisation:
    """Returns the compiled kernel if it returns what the op says it does."""
    compiled = compile_case(kernel, case_of(request))
    own = [(output.shape, output.dtype) for output in compiled.stages.kernel.outputs]
    depth = len(request.call.batch)
    said = [(tuple(s.shape[depth:]), s.dtype.name) for s in request.outputs.structs]
    if own != said:
        raise InferenceValueError.explained(
            request.who,
            f"expected the outputs that out_shape and out_dtype describe, {_listed(said)}; "
            f"the kernel returns {_listed(own)}",
            "Fix the infer functions, or leave both out: the loops then decide.",
        )
    return compiled


def _listed(arrays: Sequence[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in arrays)


def _mapped(request: Request) -> tuple[tuple[bool, ...], ...]:
    """Returns per axis that vmap added, outermost first, which inputs have it in full size."""
    return tuple(
        tuple(struct.shape[level] == size for struct in request.inputs)
        for level, size in enumerate(request.call.batch)
    )


def _with_axes(compiled: Specialisation, request: Request) -> Function:
    """Returns the raised loops as a function of arrays with the axes that vmap added.

    An input that vmap does not map has those axes, too, of size 1. Where the axes are loops of the
    kernel, its parameter is without them: so the inputs are reshaped.
    """
    batch = request.call.batch

    def whole(*flat: Any) -> Sequence[Any]:
        over = _loops_over(compiled, request)
        # JAX must not narrow the temporaries of 64 bits that the kernel has.
        with jax.enable_x64(True):
            if over is None:
                return over_batch(compiled.stages.function, batch)(*flat)
            pairs = zip(flat, over.kernel.parameters, strict=True)
            return over.function(*(jax.lax.reshape(x, buffer.shape) for x, buffer in pairs))

    return whole


def _loops_over(compiled: Specialisation, request: Request) -> Stages | None:
    """Returns loops over the axes of vmap as well; None where `jax.vmap` of the loops is better.

    It is worse where loops run in order: it turns the stores in them into scatters.
    """
    batch = request.call.batch
    stages = compiled.stages
    if not (batch and stages.is_order_bound and all(isinstance(size, int) for size in batch)):
        return None
    over = stages.batched(batch, _mapped(request))
    # An axis that became one more loop in order would run element by element.
    return over if over.loops_in_order <= stages.loops_in_order else None
