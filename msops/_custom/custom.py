"""`Custom`, the class that makes a user's kernel a JAX operator.

The file is long because of its docstrings: they are the reference that users read.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._backends import find_backend
from msops._base.building import Build
from msops._base.kernel_errors import call_compiled
from msops._custom.explain import cost_of_call, explain_call, html_table, lowered_text, stand_in
from msops._custom.options import (
    add_side_effects,
    check_op_info,
    check_rules,
    choose_func_type,
    name_of,
    read_options,
)
from msops._face import context
from msops._face.tensor import Tensor, holds, unwrap, wrap
from msops._face.tensor_data import endless
from msops._op.backend import TrialNeeded
from msops._op.call import Call, freeze_attribute, sort_arguments, sort_by_value
from msops._op.definition import Definition, Redefining
from msops._op.identity import ByValue
from msops._op.inference import read_inference, refuse_64_bit
from msops._op_info import OpInfo, format_rows, read_reg_info
from msops._primitive.programs import Programs, share_programs
from msops.errors import (
    ArgumentValueError,
    explain,
)

# Resolving reads sources and shares operators; one op's bprop may hold further ops.
_resolving_lock = threading.RLock()


_ARRAYS = (jax.Array, np.ndarray)


class Custom:
    """A kernel of your own as a JAX operator.

    Corresponds to ``mindspore.ops.Custom``. The op is its own JAX primitive: it works eagerly and
    under `jax.jit`, `jax.grad`, `jax.vmap`, `jax.lax.scan` and `jax.checkpoint`. Called on arrays
    of JAX or numpy it returns arrays of JAX. Called on a `Tensor` it returns Tensors and keeps
    64-bit types. Ops with equal definitions share one primitive and one compilation.

    Args:
      func: the kernel. ``"library.so:Symbol"`` or ``"source.c|cc|cpp|cu:Symbol"``, as text or path,
        or a `source` (aot; a source is compiled on first use), ``"aclnnMul"`` or
        ``"infer.cc:aclnnMul"`` (aot: an operator of Ascend by name, which runs as JAX code on any
        device; the source has infer functions for it), a Python function over numpy arrays
        (pyfunc; a free parameter ``out`` receives the arrays to write its results to), a loop
        kernel: a function
        decorated by `kernel` (hybrid) or one in a dialect of AKG (akg), the entry function of a
        TBE kernel or ``"file.py:entry"`` if its file imports TBE (tbe), or an AICPU
        kernel: ``"source.cc"``, a list of sources, or an empty function whose op info names the
        library by the attribute ``cust_aicpu`` (aicpu).
      out_shape: shape of the output, a tuple of shapes for several outputs, or a function that
        receives the shape of each input (and the value of each attribute) and returns one of these.
        None infers it from the kernel (aot: ``SymbolInferShape``, or the operator of Ascend; akg
        and hybrid: its loops).
        ``()`` for both this and `out_dtype` makes a pyfunc without output.
      out_dtype: the same for the dtype of the output. None infers it from the kernel (aot:
        ``SymbolInferType``, or the operator of Ascend; akg and hybrid: its loops).
      func_type: "aicpu", "akg", "aot", "hybrid", "pyfunc" or "tbe". None chooses by `func`, and
        never chooses tbe.
      bprop: the gradient: ``bprop(*inputs, out, dout)`` returns a tuple with one gradient per
        input, None for an input without a gradient. With several outputs `out` and `dout` are
        tuples. akg, hybrid and tbe kernels and operators of Ascend need no bprop: they are
        differentiated in both modes and to any order.
      reg_info: op info (`CustomRegOp`): a dict, its JSON text, or a list of them, one per target.
        Overrides the decorator `custom_info_register`.
      stateful: aicpu, aot, pyfunc: the kernel has side effects or draws unseeded random numbers.
        Equal calls are not merged and unused calls are not removed. An error inside
        `jax.checkpoint`.
      reentrant: aicpu, aot: False if the kernel may not run in two threads at once. Calls into its
        library then run one at a time.
      vmap: how the kernel batches under `jax.vmap`. None: akg, hybrid and tbe kernels are rewritten
        for a leading axis, others are "sequential", called once per element. "expand_dims" and
        "broadcast_all" call it once, with a leading axis in every input and output; with
        "expand_dims" that axis has size 1 in an input that is not mapped. Each level of nested
        `jax.vmap` adds an axis, the outermost first; an input that any level maps has all of them
        in full. Or a rule ``vmap(axis_size, in_batched, *inputs) -> (result, is_batched)``, as
        `jax.custom_batching.custom_vmap` takes. Shapes are inferred without the added axes.
      forward: True adds forward mode (`jax.jvp`, `jax.jacfwd`, `jax.hessian`) to reverse mode, by
        transposing `bprop`, which must be JAX code and linear in `dout`.
      jvp: a rule for forward mode: ``jvp(primals, tangents, out)`` returns the tangent of `out`,
        with its structure; None means no tangent. `primals` and `tangents` have one entry per
        argument of the call; the tangent of an attribute or integer is None. Without a `bprop`,
        reverse mode is the transpose of this rule, which must then be JAX code.
      inplace: aicpu, akg, aot, hybrid, pyfunc: ``{0: 0}`` writes output 0 into the buffer of input
        0. The kernel receives that buffer as both arrays, with the values of the input; a Python
        function may write to it and return it. If the program still needs the input, XLA copies it
        first; if the input is donated (``donate_argnums``) or an intermediate result, nothing is
        copied. Both must have the same shape and dtype. The loops of akg and hybrid must write to
        their parameter and return it: for an array of their own the compiler chooses the order of
        reads and writes. tbe kernels have no buffers; XLA reuses donated ones by itself.
      sharding: which dimensions may be divided over devices, by names as in `numpy.einsum`:
        ``"b i, i -> b i"``, for the flat list of inputs. Dimensions with the same name have the
        same size and are divided together: a device with a part of `b` has that part of every
        array. The kernel is called there for the shapes of the parts, so `out_shape` must be a
        function of the inputs' shapes. A name that an output lacks is never divided. Without a rule
        each device gets whole inputs, which is a warning or an error, see
        ``msops.set_context(implicit_gather=)``.
      batch_dims: a short form of `sharding`: this many leading dimensions have the same names in
        every input and output, and no other dimension may be divided.
      writable: pyfunc: pass writable copies of the inputs instead of read-only views.
      dynamic_outputs: aicpu: the kernel may return smaller outputs than `out_shape`, which is then
        the largest shape. A result is in the corner of its array, and the rest is zero. One more
        output, int32 of shape [outputs, highest rank], has the true shapes, one row each, padded
        with ones.
      host: aot: on a GPU, run the CPU kernel on the host with a copy of the arrays each way.
      cxx11_abi: aot: the ``_GLIBCXX_USE_CXX11_ABI`` that the library was built with, if its imports
        do not show it.
      compile_attrs: akg and hybrid: ``{"lower": "xla"}`` or ``{"lower": "native"}`` overrides the
        choice that msops makes by estimated costs: operations that XLA fuses, or C (CUDA on a GPU).
        pyfunc: ``{"lower": "callback"}`` uses `jax.pure_callback` on the CPU too.
      build: aot, aicpu: how a source is compiled and linked: further sources, folders of headers,
        flags and libraries, as a `Build`.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument cannot be used.
      OpInfoTypeError, OpInfoValueError: `reg_info` is malformed.

    Example:
      >>> import jax, jax.numpy as jnp, numpy as np, msops
      >>> op = msops.Custom(np.square, lambda x: x, lambda x: x,
      ...                   bprop=lambda x, out, dout: (2 * x * dout,))
      >>> jax.jit(jax.grad(lambda x: op(x).sum()))(jnp.array([1.0, 4.0]))
      Array([2., 8.], dtype=float32)

      The outputs and the gradient of a loop kernel are inferred from its loops. Its tensors may
      be bool, integers, float16, bfloat16, float32 and float64:

      >>> def running_sum(x):
      ...     y = output_tensor(x.shape, x.dtype)
      ...     for i in range(x.shape[0]):
      ...         y[i] = x[i] if i == 0 else y[i - 1] + x[i]
      ...     return y
      >>> op = msops.Custom(running_sum, func_type="akg")
      >>> jax.value_and_grad(lambda x: op(x).sum())(jnp.array([1.0, 4.0]))
      (Array(6., dtype=float32), Array([2., 1.], dtype=float32))

    Source: MindSpore 2.7.2, ``mindspore.ops.Custom``.
    """

    # Until __init__ ends: the methods of a subclass may be given as infer functions, which are
    # compared by the op that they belong to.
    _is_resolving = True

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str | None = None,
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
        *,
        stateful: bool = False,
        reentrant: bool = True,
        vmap: str | Callable[..., Any] | None = None,
        forward: bool = False,
        jvp: Callable[..., Any] | None = None,
        inplace: Mapping[int, int] | None = None,
        sharding: str | None = None,
        batch_dims: int = 0,
        writable: bool = False,
        host: bool = False,
        dynamic_outputs: bool = False,
        cxx11_abi: bool | None = None,
        compile_attrs: Mapping[str, Any] | None = None,
        build: Build | None = None,
    ):
        self.name = self.__name__ = name_of(func)
        self._who = f"Custom '{self.name}'"
        check_rules(bprop, jvp, forward, self._who)
        self.func_type = choose_func_type(func, func_type, self._who)
        self._backend = find_backend(self.func_type)
        options = {
            "stateful": stateful,
            "reentrant": reentrant,
            "vmap": vmap,
            "forward": forward,
            "jvp": jvp,
            "inplace": inplace,
            "sharding": sharding,
            "batch_dims": batch_dims,
            "writable": writable,
            "host": host,
            "dynamic_outputs": dynamic_outputs,
            "cxx11_abi": cxx11_abi,
            "compile_attrs": compile_attrs,
            "build": build,
        }
        self._options = read_options(options, self._backend, self._who)
        self._source = self._backend.read(func, self._options, self._who)
        self._inference = read_inference(
            out_shape, out_dtype, self._backend.may_have_no_outputs, self._who
        )
        # A kernel file brings op info of its own.
        holder = self._source if hasattr(self._source, "reg_info") else func
        infos = read_reg_info(reg_info, holder, self.func_type, self._who, self._backend.imply_type)
        check_op_info(infos, self._backend, self._who)
        self._infos: tuple[OpInfo, ...] = tuple(infos[target] for target in sorted(infos))
        self._options = self._backend.settle(self._source, self._options, self._infos, self._who)
        self._bprop = bprop
        self._prim_attrs: dict[str, Any] = {}
        self._programs: Programs | None = None
        self._is_resolving = False
        # Compiled calls by number of arguments, where that number determines the structure of the
        # call: for calls with arrays only, and with Tensors only.
        self._of_arrays: dict[int, Callable[..., Any]] = {}
        self._of_tensors: dict[int, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        """Calls the op.

        Args:
          *args: the inputs, each an array, a `Tensor`, a number, or a list of arrays ("dynamic" in
            op info); then the attributes, in the order in which op info names them.

        Returns:
          One array, or a tuple of arrays; Tensors if an input is a Tensor. An op without outputs
          returns None, and on MindSpore's face ``Tensor([0], Int32)`` as MindSpore does.
        """
        # An eager call must cost what a jnp call costs, so the two plain cases come first.
        compiled = self._of_arrays.get(len(args))
        if compiled is not None:
            for arg in args:
                if type(arg) is not seam.ARRAY_TYPE:
                    break
            else:
                return _run(compiled, args)
        compiled = self._of_tensors.get(len(args))
        if compiled is not None:
            values = [arg.value for arg in args if type(arg) is Tensor]
            if len(values) == len(args) and {*map(type, values)} == {seam.ARRAY_TYPE}:
                with jax.enable_x64(True):
                    return wrap(_run(compiled, values))
        arrays, has_tensors = self._read_arguments(args)
        if has_tensors or (not holds(_ARRAYS, args) and context.runs_script()):
            with jax.enable_x64(True):
                result = self._call(arrays, tensors=True)
                return Tensor([0], jnp.int32) if result is None else wrap(result)
        return self._call(args, tensors=False)

    def _read_arguments(self, args: Sequence[Any]) -> tuple[Sequence[Any], bool]:
        """Returns call arguments with arrays for Tensors, and whether there were Tensors."""
        try:
            has_tensors = holds(Tensor, args)
            return unwrap(args) if has_tensors else args, has_tensors
        except RecursionError:
            raise endless(self._who) from None

    def _call(self, args: Sequence[Any], tensors: bool) -> Any:
        call, flat = self._sort_arguments(args, tensors)
        if not tensors:
            for index, value in enumerate(flat):
                refuse_64_bit(getattr(value, "dtype", None), f"input {index}", self._who)
        programs = self._resolve()
        if any(map(seam.is_tracer, flat)):
            # Outside the gradient's rule, so that gradients are summed over what was made alike.
            arrays = seam.vary_alike([jnp.asarray(value) for value in flat])
            results = programs.function(call)(*arrays)
            outputs = programs.operator.outputs(call, [jax.typeof(array) for array in arrays])
            return outputs.pack(results)
        compiled = programs.compiled(call.without_values() if call.values else call)
        if programs.operator.definition.inference.has_outputs and call.is_plain:
            (self._of_tensors if tensors else self._of_arrays)[len(args)] = compiled
        return _run(compiled, flat)

    def _sort_arguments(self, args: Sequence[Any], tensors: bool) -> tuple[Call, list[Any]]:
        """Returns the structure of a call, and its flat arrays."""
        definition = self._resolve().operator.definition
        if definition.backend.takes_values:
            return sort_by_value(args, tensors, self._who)
        info = next(iter(definition.infos), None)
        return sort_arguments(args, info, tensors, definition.backend.takes_tuples, self._who)

    def _resolve(self) -> Programs:
        """Returns the op's programs; builds the kernel at the first call."""
        if self._programs is not None:
            return self._programs
        with _resolving_lock:
            if self._programs is None:
                self._is_resolving = True
                try:
                    self._programs = share_programs(self._define())
                finally:
                    self._is_resolving = False
            return self._programs

    def _define(self) -> Definition:
        options = self._options
        if self._prim_attrs:
            options = add_side_effects(options, self._prim_attrs, self._backend)
        definition = Definition(
            name=self.name,
            backend=self._backend,
            kernel=self._backend.resolve(self._source, self._options, self._who),
            inference=self._inference,
            infos=self._infos,
            bprop=None if self._bprop is None else ByValue(self._bprop),
            options=options,
            prim_attrs=tuple(self._prim_attrs.items()),
        )
        kernel = definition.kernel
        return kernel.redefine(definition) if isinstance(kernel, Redefining) else definition

    def __msops_key__(self) -> Any:
        # A bprop that calls its own op, and an infer function that is a method of it, would ask for
        # the very key that is being made.
        return id(self) if self._is_resolving else self._resolve().operator.definition

    def add_prim_attr(self, name: str, value: Any) -> Custom:
        """Adds an attribute that every call of the op has, as MindSpore's primitives do.

        An aot kernel reads it through ``AotExtra``; other kernels do not see it. As in MindSpore,
        ``side_effect_mem``, ``side_effect_io`` or ``side_effect_hidden`` with True means that the
        kernel has side effects: it is the same as ``Custom(stateful=True)``.

        Args:
          name: the attribute's name.
          value: bool, int, float, str, or a (nested) list of these.

        Returns:
          The op.

        Raises:
          ArgumentTypeError: `value` has another type.

        Source: MindSpore 2.7.2, ``mindspore.ops.Primitive.add_prim_attr``.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentValueError(
                explain(
                    self._who,
                    f"expected an identifier as the name of an attribute; got {name!r}",
                    "Use the name the kernel asks for, e.g. 'axis'.",
                )
            )
        self._prim_attrs[name] = freeze_attribute(value, name, self._who)
        self._programs = None
        self._of_arrays.clear()
        self._of_tensors.clear()
        return self

    def explain(self, *args: Any) -> str:
        """Explains what a call becomes in XLA, and for a loop kernel why.

        Args:
          *args: the arguments of the call: arrays, or a `jax.ShapeDtypeStruct` for each. Without
            any, the latest call is explained.

        Returns:
          Text of several lines. For akg and hybrid: which loops are parallel, reductions or
          order-bound, what each nest was raised to, and whether XLA operations or native code run.

        Raises:
          ArgumentValueError: no `args`, and the op has not been called.
          BuildError: the loops cannot be compiled for such inputs.

        Example:
          >>> import jax, jax.numpy as jnp, msops
          >>> def double(x):
          ...     y = output_tensor(x.shape, x.dtype)
          ...     for i in range(x.shape[0]):
          ...         y[i] = 2.0 * x[i]
          ...     return y
          >>> op = msops.Custom(double, func_type="akg")
          >>> text = op.explain(jax.ShapeDtypeStruct((1000,), jnp.float32))
          >>> print(text.splitlines()[-1].strip())
          loop i (line 4): elementwise
        """
        return explain_call(self._resolve(), self._find_call(args))

    def lower_text(self, *args: Any, stage: str = "stablehlo") -> str:
        """Returns the text of a call at a stage of its compilation.

        Args:
          *args: as for `explain`.
          stage: "jaxpr", "stablehlo" (the input of XLA) or "hlo" (its output). For akg and hybrid
            also "ir" (the loop IR of the kernel), "marked" (each loop known as parallel, reduction
            or serial), "raised" (nests that each are one array operation), "steps" (these
            operations), "c" and "cuda" (native code). Every stage is available, whichever form
            runs; `explain` reports that.

        Returns:
          The text.

        Raises:
          ArgumentValueError: there is no such stage; or no `args`, and the op has not been called.
          BuildError: the loops cannot be compiled for such inputs.

        Example:
          >>> import jax.numpy as jnp, msops
          >>> def double(x):
          ...     y = output_tensor(x.shape, x.dtype)
          ...     for i in range(x.shape[0]):
          ...         y[i] = 2.0 * x[i]
          ...     return y
          >>> op = msops.Custom(double, func_type="akg")
          >>> print(op.lower_text(jnp.ones(3), stage="marked"))
          kernel double(x: float32[3]) -> (y) {
            buffer y: float32[3]
            parallel i in 0 .. 3 {
              y[i] = 2.0:float32 * x[i]
            }
          }
          <BLANKLINE>
        """
        return lowered_text(self._resolve(), self._find_call(args), stage)

    def cost_analysis(self, *args: Any) -> dict[str, float]:
        """Returns the cost of a call, as far as it is known without running it.

        Corresponds to ``jax.stages.Compiled.cost_analysis``, which cannot look into a kernel that
        is a custom call.

        Args:
          *args: as for `explain`.

        Returns:
          A dict with those of JAX's keys that are known.

          For XLA operations the values are XLA's own counts. Otherwise "bytes accessed" is the size
          of all inputs and outputs, and for loops that run as native code, or serially, "flops"
          and "transcendentals" count arithmetic on elements and calls of functions like exp; an
          ``if`` on data counts as its longer branch. These two are absent for kernels in C++ and
          Python, where the number of iterations depends on data, and where counting the iterations
          takes more than some seconds.

        Raises:
          ArgumentValueError: no `args`, and the op has not been called.
          BuildError: the kernel cannot be compiled for such inputs.

        Example:
          >>> import jax, jax.numpy as jnp, msops
          >>> def running_sum(x):
          ...     y = output_tensor(x.shape, x.dtype)
          ...     for i in range(x.shape[0]):
          ...         y[i] = x[i] if i == 0 else y[i - 1] + x[i]
          ...     return y
          >>> op = msops.Custom(running_sum, func_type="akg")
          >>> op.cost_analysis(jax.ShapeDtypeStruct((1000,), jnp.float32))
          {'bytes accessed': 8000.0, 'flops': 999.0, 'transcendentals': 0.0}
        """
        return cost_of_call(self._resolve(), self._find_call(args))

    def _find_call(self, args: Sequence[Any]) -> tuple[Call, Sequence[Any]] | None:
        if not args:
            return None
        values, tensors = self._read_arguments(args)
        arrays = jax.tree.map(lambda value: stand_in(value, self._who), list(values))
        return self._sort_arguments(arrays, tensors)

    def __copy__(self) -> Custom:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._prim_attrs = dict(self._prim_attrs)
        twin._of_arrays, twin._of_tensors = {}, {}
        return twin

    def __deepcopy__(self, memo: Any) -> Custom:
        # Cells are copied with their ops. A kernel is what it is; only added attributes are own.
        return copy.copy(self)

    def __repr__(self) -> str:
        rows = [f"  {info.target}: {row}" for info in self._infos for row in format_rows(info)]
        return "\n".join([f"Custom('{self.name}', func_type='{self.func_type}')", *rows])

    def _repr_html_(self) -> str:
        return html_table(self.name, self.func_type, self._infos)


def _run(compiled: Callable[..., Any], flat: Sequence[Any]) -> Any:
    """Runs a compiled call, after the trial that it may need."""
    try:
        return call_compiled(compiled, *flat)
    except TrialNeeded as needed:
        trial = needed.trial
    trial(flat)
    return call_compiled(compiled, *flat)
