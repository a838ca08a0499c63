"""The op under check: its call, its arrays, and ways to run it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._backends.aicpu import libraries as aicpu_libraries
from msops._backends.aicpu.backend import AicpuKernel
from msops._backends.aot import backend as aot
from msops._backends.aot.infer_functions import InferFunctions
from msops._base.building import Build, SourceText
from msops._base.dtypes import as_dtype
from msops._calls.host_function import HostFunction
from msops._calls.library_call import ForeignCall, LibraryCall
from msops._calls.python_call import PythonCall
from msops._custom.custom import Custom
from msops._face.tensor import read_arguments
from msops._jax_seam.division import Dimensions
from msops._op.call import Slot
from msops._op.definition import Definition
from msops._op.outputs import NO_OUTPUTS, Outputs
from msops._op.process_call import ProcessCall
from msops._op.request import Request
from msops._toolchain import Library
from msops.errors import ArgumentTypeError, MsopsError
from msops.testing.guarded import POISONS, HangError, Job, Run, arrays_of, run_jobs, show, title_of
from msops.testing.other_inputs import other_elements, other_values, resized, rolled
from msops.testing.python_calls import call_function, call_in_a_row, call_on_threads
from msops.testing.python_settings import SettingsWatch

_LIMIT_S = 1.0
# What a C++ compiler takes.
_SOURCES = (".c", ".cc", ".cpp", ".cxx")


def _files(sources: Path | SourceText | tuple[Path, ...]) -> tuple[Path, ...]:
    """Returns the files that sources are compiled as."""
    if isinstance(sources, SourceText):
        return (Path(sources.file_name),)
    return sources if isinstance(sources, tuple) else (sources,)


class EndsProcessError(Exception):
    """A function of a library that is asked in this process would end it."""


class Subject:
    """An op with the arguments it is checked on.

    Args:
      op: the op.
      args: what it is called with; Tensors are taken for arrays, in 64-bit mode.
      limit_s: how long a call of its kernel may take.
    """

    def __init__(
        self,
        op: Any,
        args: Sequence[Any],
        limit_s: float = 30.0,
        attributes: Mapping[str, Any] | None = None,
    ):
        if not isinstance(op, Custom):
            raise ArgumentTypeError.explained(
                "msops.testing.opcheck",
                f"expected an op made by msops.Custom; got {type(op).__name__}",
                "Pass the op itself, and its inputs behind it: opcheck(op, x, y).",
            )
        self.op, self.limit_s = op, limit_s
        # Whether it did not end on values in another order: it is not tried on such again.
        self.hangs_elsewhere = False
        # The setting may be of the calling thread alone; checks use others, too.
        self._wide = seam.x64_enabled() or read_arguments(args, "msops.testing.opcheck")[1]
        with self.face():
            found = op._find_call(args, dict(attributes or {})) if args else None
            if found is None:
                raise ArgumentTypeError.explained(
                    "msops.testing.opcheck",
                    f"expected inputs to check {op.__name__!r} on; got none",
                    "Pass what the op is called with: opcheck(op, x, y).",
                )
            self.call, flat = found
            self.flat = tuple(np.asarray(value, jax.typeof(value).dtype) for value in flat)
            self._operator = op._resolve().operator
        jax.devices()  # a function may call JAX: what starting a backend sets is not its own
        self._watch = SettingsWatch()
        self.first: Run | None = None
        # What differs with the order of calls; see `turns`.
        self.lines_of_turns: list[str] = []
        self._own_call = self.call
        self._ends: dict[Hashable, str] = {}
        self.options = self.definition.options
        self.func_type = self.definition.backend.func_type

    def __str__(self) -> str:
        arrays = [show(array) for array in self.flat]
        return f"{self.func_type} op {self.op.__name__!r} on {', '.join(arrays)}"

    def face(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which the op is called."""
        return jax.enable_x64(True) if self._wide else contextlib.nullcontext()

    def on(self, flat: tuple[np.ndarray, ...], given: tuple[Any, ...] | None = None) -> Subject:
        """Returns the op with other arrays, or other values of the attributes that a call gives."""
        _ = self._needs_xla  # found on what was given
        other = copy.copy(self)
        for name in ("unlike", "trial"):  # what was found on these
            vars(other).pop(name, None)
        other.flat = flat
        if given is not None:
            other.call = dataclasses.replace(self.call, given=given)
        return other

    def with_layout(self, layout: tuple[Slot, ...], flat: tuple[np.ndarray, ...]) -> Subject:
        """Returns the op with arrays that its call groups otherwise."""
        other = self.on(flat)
        other.call = dataclasses.replace(self.call, layout=layout)
        return other

    def impatient(self) -> Subject:
        """Returns the op for what may take for ever, such as a step of 0: nobody waits for that."""
        other = self.on(self.flat)
        other.limit_s = min(self.limit_s, _LIMIT_S)
        return other

    def with_other_attributes(self) -> Iterator[tuple[str, Subject]]:
        """Yields the op with another value of one attribute, and that in words."""
        for index, (name, value) in enumerate(zip(self.call.names, self.call.given, strict=False)):
            for other in other_values(value):
                given = (*self.call.given[:index], other, *self.call.given[index + 1 :])
                yield f"{name}={other!r}", self.on(self.flat, given)

    @property
    def has_rule(self) -> bool:
        """Whether its author gave a derivative: what that raises is a fault."""
        definition = self.definition
        return any((definition.bprop, definition.vjp, self.options.jvp))

    @property
    def has_given_attributes(self) -> bool:
        """Whether its attributes are those that it was given."""
        return self._own_call is self.call

    @property
    def has_both_rules(self) -> bool:
        """Whether its author gave a derivative for each mode: they may be two."""
        return bool(self.options.jvp and (self.definition.bprop or self.definition.vjp))

    def outputs(self, flat: Sequence[Any] | None = None) -> Outputs:
        """Returns what the op says it returns for such arrays.

        Raises:
          EndsProcessError: to infer that would end this process.
        """
        self._survive_inference(self.flat if flat is None else flat)
        return self._operator.outputs(self.call, structs_of(self.flat if flat is None else flat))

    def _survive_inference(self, flat: Sequence[Any]) -> None:
        """Raises EndsProcessError if the library's InferShape ends its process.

        It is asked in another one for the shapes at which it may, and for other attributes.
        """
        kernel = self.definition.kernel
        is_own = self.has_given_attributes and all(
            len(a.shape) == len(b.shape) and math.prod(a.shape)
            for a, b in zip(flat, self.flat, strict=True)
        )
        if is_own or not isinstance(kernel, aot.AotKernel):
            return
        if not InferFunctions(kernel.library, kernel.symbol).has("shape"):
            return
        structs = structs_of(flat)
        key = (self.call.given, tuple((s.shape, s.dtype) for s in structs))
        if key not in self._ends:
            request = self._operator.request(self.call, structs, "", NO_OUTPUTS)
            arrays = tuple(np.broadcast_to(np.zeros((), s.dtype), s.shape) for s in structs)
            call = aot.call_of(kernel, request)
            (run,) = run_jobs([Job(call, arrays, (), self.limit_s, infers=True)])
            self._ends[key] = run.crash.signal if run.crash else ""
        if self._ends[key]:
            raise EndsProcessError(f"{kernel.symbol}InferShape ends the process: {self._ends[key]}")

    @property
    def definition(self) -> Definition:
        """Everything that makes the op what it is."""
        return self._operator.definition

    @property
    def kernel(self) -> Hashable:
        """What its backend calls or compiles."""
        return self.definition.kernel

    @property
    def library(self) -> Library | None:
        """The library for the CPU that the kernel is in, if it is in one."""
        call = self._process_call(self.flat)
        return call.library if isinstance(call, LibraryCall) else None

    @property
    def is_handler(self) -> bool:
        """Whether it is a handler that needs XLA: what it is not meant for may end this process."""
        return self.library is not None and self.native() is None

    @property
    def is_of_xla(self) -> bool:
        """Whether it is neither a function in a library nor one of Python."""
        return self.native() is None and self.host_function() is None

    @functools.cached_property
    def _needs_xla(self) -> bool:
        """Whether it is a handler of XLA's FFI that fails where no XLA calls it."""
        call = self._process_call(self.flat)
        if not isinstance(call, ForeignCall):
            return False
        (run,) = run_jobs([Job(call, self.flat, self.outputs().structs, self.limit_s)])
        return bool(run.error)

    def _of_kernel(self, call: ProcessCall | None) -> LibraryCall | None:
        """Returns a call that runs without XLA, too."""
        return call if isinstance(call, LibraryCall) and not self._needs_xla else None

    def native(self, flat: Sequence[Any] | None = None) -> LibraryCall | None:
        """Returns the call of a kernel in a library that the op becomes on the CPU, if it does."""
        return self._of_kernel(self._process_call(self.flat if flat is None else flat))

    def request(self, flat: Sequence[Any]) -> Request:
        """Returns what a backend is asked for on the CPU."""
        self._survive_inference(flat)
        structs = structs_of(flat)
        outputs = self._operator.outputs(self.call, structs)
        return self._operator.request(self.call, structs, "cpu", outputs)

    def _process_call(
        self, flat: Sequence[Any], kernel: Hashable | None = None
    ) -> ProcessCall | None:
        own = self.kernel if kernel is None else kernel
        return self.definition.backend.call(own, self.request(flat))

    def check_taken(self, flat: Sequence[Any]) -> None:
        """Raises what the op raises if it takes no arrays of such shapes and dtypes; none runs.

        What becomes a call of this process is not lowered for that, which takes much longer.
        """
        if self._process_call(flat) is None:
            jax.jit(self.apply).lower(*flat)
            return
        structs = structs_of(flat)
        self._operator.guard(self.call, structs, self._operator.outputs(self.call, structs), "cpu")

    def job(self, flat: Sequence[Any] | None = None, kernel: Hashable | None = None) -> Job | None:
        """Returns a run of the kernel, or of another, if it is in a library for the CPU."""
        inputs = tuple(self.flat if flat is None else flat)
        call = self._of_kernel(self._process_call(inputs, kernel))
        if call is None:
            return None
        return Job(call, inputs, self.outputs(inputs).structs, self.limit_s)

    def rebuilt(self, flags: tuple[str, ...]) -> tuple[Library, tuple[Path, ...]] | None:
        """Returns the kernel's library built with more flags, and its sources; None without any."""
        kernel, options = self.definition.kernel, self.options
        if isinstance(kernel, AicpuKernel) and kernel.sources:
            build = options.build or Build()
            build = dataclasses.replace(build, flags=(*build.flags, *flags))
            library = aicpu_libraries.build_library(kernel.sources, str(self), build)
            return library, _files(kernel.sources)
        if not isinstance(kernel, aot.AotKernel) or kernel.source is None or not self.native():
            return None
        file = kernel.source.file
        if file.suffix not in _SOURCES:
            return None
        return aot.build_library(kernel.source, options, str(self), flags), _files(file)

    def source_texts(self) -> list[str]:
        """Returns the sources that the kernel's library was built from, as text."""
        kernel = self.definition.kernel
        if isinstance(kernel, AicpuKernel):
            sources: Any = kernel.sources
        elif isinstance(kernel, aot.AotKernel) and kernel.source is not None:
            sources = kernel.source.file
        else:
            return []
        if isinstance(sources, SourceText):
            return [sources.text]
        files = [file for file in _files(sources) if file.suffix in _SOURCES]
        return [file.read_text(errors="replace") for file in files if file.is_file()]

    def dimensions(self) -> Dimensions | None:
        """Returns what the op's sharding rule says of the arrays; None without a rule."""
        return self._operator.dimensions(self.call, self.flat, self.outputs().structs)

    def host_function(self, flat: Sequence[Any] | None = None) -> HostFunction | None:
        """Returns what calls a Python function as the op does; None of another kernel."""
        call = self._process_call(self.flat if flat is None else flat)
        return call.function if isinstance(call, PythonCall) else None

    def call_function(self, function: HostFunction, flat: Sequence[Any], poison: int) -> Run:
        """Calls a Python function on copies of arrays, in time, without JAX.

        Raises:
          HangError: it did not end in time.
        """
        structs = self.outputs(flat).structs
        title = title_of(str(self.op.__name__), flat, structs)
        return call_function(function, flat, structs, poison, self._watch, self.limit_s, title)

    def call_in_a_row(self, watch: SettingsWatch | None = None, fails: bool = False) -> Run:
        """Calls a Python function many times on copies of the arrays, in time, without JAX.

        Args:
          watch: sees what calls change of the process; by default with all that calls changed.
          fails: whether the function may raise.

        Raises:
          HangError: it did not end in time.
        """
        function = self.host_function()
        assert function is not None
        structs = self.outputs().structs
        title = title_of(str(self.op.__name__), self.flat, structs)
        return call_in_a_row(
            function, self.flat, structs, watch or self._watch, self.limit_s, title, fails
        )

    def call_on_threads(self) -> Run:
        """Calls a Python function on threads at once: on other numbers, and another size.

        Raises:
          HangError: a call did not end in time.
        """
        flats = [self.flat, *([self.unlike] if self.unlike else [])]
        extents = {n: n + 1 for array in self.flat for n in array.shape if n > 1}
        larger = tuple(resized(rolled(array), extents) for array in self.flat)
        flats += [larger] if extents and self.stands([larger]) else []
        calls = []
        for flat in flats:
            function = self.host_function(flat)
            assert function is not None
            calls.append((function, flat, self.outputs(flat).structs))
        title = title_of(str(self.op.__name__), self.flat, self.outputs().structs)
        return call_on_threads(calls, self.limit_s, title)

    def changed_settings(self) -> list[str]:
        """Reports settings of this process that calls of a Python function changed, once."""
        return self._watch.lines()

    def contradictions(self) -> list[str]:
        """Reports where out_shape and out_dtype differ from what the kernel answers itself."""
        definition = self.definition
        structs = self.outputs().declared
        request = self._operator.request(self.call, structs_of(self.flat), "", NO_OUTPUTS)
        answers: dict[str, Any] = {}
        for half in ("shape", "dtype"):
            # What a kernel does not answer contradicts nothing.
            with contextlib.suppress(MsopsError):
                answers[half] = definition.backend.infer(
                    definition.kernel, half, request, definition.infos, str(self)
                )
        inferred = {"shape": [list(s.shape) for s in structs], "dtype": [s.dtype for s in structs]}
        return [
            f"out_{half} says {_listed(inferred[half])}; the kernel itself {_listed(own)}"
            for half, own in ((half, _as_list(half, answer)) for half, answer in answers.items())
            if own != inferred[half]
        ]

    def apply(self, *flat: Any) -> list[Any]:
        """Calls the op on arrays, which may be traced; returns its flat results."""
        arguments, names = self.call.arguments(flat), self.call.names
        infos = self.definition.infos
        if infos and infos[0].by_name and names:
            inputs = arguments[: -len(names)]
            result = self.op(*inputs, **dict(zip(names, arguments[-len(names) :], strict=True)))
        else:
            result = self.op(*arguments)
        return jax.tree.leaves(result)

    def run(self, flat: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """Calls the op eagerly on copies of arrays; returns its results."""
        arrays = [jax.numpy.array(array) for array in (self.flat if flat is None else flat)]
        return [np.asarray(result) for result in self.apply(*arrays)]

    def run_in_time(self, flat: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Calls the op as `run` does, but a Python function alone: that can be stopped.

        It also takes less time, as no program is compiled.

        Raises:
          HangError: the function did not end in time.
          MsopsError: it raised, or returned what the op does not declare.
        """
        runs = self.runs_in_python(flat, POISONS[:1])
        if not runs:
            return self.run(flat)
        if runs[0].raised is not None:
            raise runs[0].raised
        return arrays_of(runs[0], self.outputs(flat).structs)

    def runs_in_python(self, flat: Sequence[np.ndarray], poisons: Sequence[int]) -> list[Run]:
        """Calls a Python function over outputs that hold each poison; nothing of another kernel.

        Raises:
          HangError: it did not end in time.
        """
        function = self.host_function(flat)
        if function is None:
            return []
        self.check_taken(flat)
        return [self.call_function(function, flat, poison) for poison in poisons]

    def stands(self, cases: Sequence[Sequence[np.ndarray]]) -> bool:
        """Returns whether the op takes inputs that it may never have been meant for.

        A kernel in a library is tried in a process of its own: it may not refuse them, but crash.
        """
        if self.hangs_elsewhere:
            return False
        kinds = {
            tuple((array.shape, array.dtype) for array in flat) for flat in (self.flat, *cases)
        }
        if self.is_handler and len(kinds) > 1:
            return False
        jobs = []
        try:
            for flat in cases:
                job = self.job(flat)
                if job is None:
                    self.run_in_time(flat)
                else:
                    jobs.append(job)
            runs = run_jobs(jobs)
        except HangError:
            self.hangs_elsewhere = True
            return False
        except Exception:  # it does not take them
            return False
        return not any(run.crash or run.error or run.damage for run in runs)

    @functools.cached_property
    def unlike(self) -> tuple[np.ndarray, ...] | None:
        """Other numbers, or the same in another order; None if the op takes neither."""
        smaller = tuple(other_elements(array, 2)[1] for array in self.flat)
        choices = (smaller, tuple(map(rolled, self.flat)))
        return next((flat for flat in choices if self.stands([flat])), None)

    @functools.cached_property
    def trial(self) -> list[np.ndarray] | Exception:
        """The results of one eager call in this process, or what it raised."""
        try:
            # The first call of all, unless the caller has made one.
            self.first = next(iter(self.runs_in_python(self.flat, POISONS[:1])), None)
            if self.first is not None and self.first.raised is not None:
                raise self.first.raised
            return self.run()
        except HangError:
            raise
        except Exception as error:
            return error


def structs_of(flat: Sequence[Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Returns shapes and dtypes of arrays."""
    return tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in flat)


def _as_list(half: str, answer: Any) -> list[Any]:
    """Returns what a kernel infers as one entry per output."""
    if half == "dtype":
        answers = answer if isinstance(answer, tuple) else (answer,)
        return [as_dtype(dtype).dtype for dtype in answers]
    several = bool(answer) and not isinstance(answer[0], int)
    return [list(shape) for shape in (answer if several else [answer])]


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))
