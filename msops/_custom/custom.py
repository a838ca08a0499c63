"""`Custom`, the class that makes a user's kernel a JAX operator.

The file is long because of its docstrings: they are the reference that users read. What only some
programs need of an op is imported by the method that needs it, as `import msops` must be quick.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, Never

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._backends import find_backend
from msops._base.building import Build
from msops._custom.help import OfInstance, help_text
from msops._custom.options import (
    add_side_effects,
    check_rules,
    choose_func_type,
    find_op_info,
    name_of,
    read_options,
    unknown_option,
)
from msops._custom.parameters import (
    input_names,
    place_keywords,
    positional_names,
    read_attributes,
    signature_of_call,
)
from msops._face.parameter import note_effect
from msops._face.tensor import Tensor, read_arguments, wrap
from msops._op.call import Call
from msops._op.definition import Definition, Redefining
from msops._op.identity import ByValue
from msops._op.inference import read_inference
from msops._op.sorting import freeze_attribute, sort_arguments
from msops._op_info import call_attribute_names
from msops._primitive.programs import Programs, share_programs
from msops.errors import ArgumentTypeError, ArgumentValueError, MsopsError, OpInfoValueError

if TYPE_CHECKING:
    import inspect

    from typing_extensions import ParamSpec, TypeVar

    # How a call is typed: known where a decorator sees the kernel's own function.
    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

# The ops that this thread resolves: the bprop of one may hold others, and itself.
_resolving: ContextVar[tuple[Custom[Any], ...]] = ContextVar("resolving", default=())
# Held, for moments, while an op takes or forgets what was resolved of it.
_forgetting = threading.Lock()
# Looked up once: every eager call compares with it.
_ARRAY = seam.ARRAY_TYPE


class Custom(Generic[P, R]):
    """A kernel of your own as a JAX operator.

    Corresponds to ``mindspore.ops.Custom``. The op is its own JAX primitive: it works eagerly and
    under `jax.jit`, `jax.grad`, `jax.vmap`, `jax.lax.scan` and `jax.checkpoint`. Called on arrays
    of JAX or numpy it returns arrays of JAX. Called on a `Tensor` it returns Tensors and keeps
    64-bit types. Ops with equal definitions are equal, and share one primitive and one compilation.
    `pyfunc`, `kernel` and `cpp` are short forms of it.

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
      out: instead of `out_shape` and `out_dtype`, both in one, as `jax.pure_callback` takes it: a
        `jax.ShapeDtypeStruct`, a pytree of them, or a function of the inputs that returns one. None
        leaves it to these two. It is called as the op is, with a ShapeDtypeStruct for each array.
        The op returns that tree. Kernels other than Python functions have the leaves as outputs, in
        JAX's order. ``()`` makes a pyfunc without output.
      attrs: the attributes of a kernel without op info, by name: a default, whose type the
        attribute has (``{"alpha": 0.5}``), or a type if each call must give it
        (``{"alpha": float}``). Keyword-only parameters of a pyfunc or a loop kernel, and parameters
        of a loop kernel that have a default, are attributes without it.
      func_type: "aicpu", "akg", "aot", "ffi", "hybrid", "pyfunc" or "tbe". None chooses by `func`,
        and never chooses ffi or tbe.
      bprop: the gradient: ``bprop(*inputs, out, dout)``, with the attributes that it has
        parameters for after the inputs, returns a tuple with one gradient per
        input, None for an input without a gradient. With several outputs `out` and `dout` are
        tuples. akg, hybrid and tbe kernels and operators of Ascend need no bprop: they are
        differentiated in both modes and to any order.
      reg_info: op info (`CustomRegOp`): a dict, its JSON text, or a list of them, one per target.
        Overrides the decorator `custom_info_register`.
      stateful: aicpu, aot, ffi, pyfunc: the kernel has side effects or draws unseeded random
        numbers. Equal calls are not merged and unused calls are not removed. An error inside
        `jax.checkpoint`. With "ordered" calls also run in the order of the program, those of other
        such ops and of ``io_callback(ordered=True)`` among them; else those of one program that do
        not depend on each other run in any order. An error inside `jax.vmap` and in programs for
        several devices.
      reentrant: aicpu, aot, ffi: False if the kernel may not run in two threads at once. Calls into
        its library then run one at a time.
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
      inplace: aicpu, akg, aot, ffi, hybrid, pyfunc: ``{0: 0}`` writes output 0 into the buffer of
        input 0. The kernel receives that buffer as both arrays, with the values of the input; a
        Python function may write to it and return it. If the program still needs the input, XLA
        copies it first; if the input is donated (``donate_argnums``) or an intermediate result,
        nothing is copied. Both must have the same shape and dtype. The loops of akg and hybrid must
        write to their parameter and return it: for an array of their own the compiler chooses the
        order of reads and writes. tbe kernels have no buffers; XLA reuses donated ones by itself.
      sharding: which dimensions may be divided over devices, by names as in `numpy.einsum`:
        ``"b i, i -> b i"``, for the flat list of inputs. Dimensions with the same name have the
        same size and are divided together: a device with a part of `b` has that part of every
        array. The kernel is called there for the shapes of the parts, so `out_shape` must be a
        function of the inputs' shapes. A name that an output lacks is never divided. Without a rule
        each device gets whole inputs, which is a warning or an error, see
        ``msops.set_context(implicit_gather=)``.
      batch_dims: a short form of `sharding`: this many leading dimensions have the same names in
        every input and output, and no other dimension may be divided.
      writable: aicpu, pyfunc: True passes copies of the inputs, which the kernel may write to.
        False passes the inputs themselves: a Python function gets read-only views; an AICPU kernel
        must not write to them, which nothing checks. None is True for aicpu and False for pyfunc.
      dynamic_outputs: aicpu: the kernel may return smaller outputs than `out_shape`, which is then
        the largest shape. A result is in the corner of its array, and the rest is zero. One more
        output, int32 of shape [outputs, highest rank], has the true shapes, one row each, padded
        with ones.
      host: aot, ffi: on a GPU, run the CPU kernel on the host with a copy of the arrays each way.
      cxx11_abi: aot: the ``_GLIBCXX_USE_CXX11_ABI`` that the library was built with, if its imports
        do not show it.
      compile_attrs: akg and hybrid: ``{"lower": "xla"}`` or ``{"lower": "native"}`` overrides the
        choice that msops makes by estimated costs: operations that XLA fuses, or C (CUDA on a GPU).
        pyfunc: ``{"lower": "callback"}`` uses `jax.pure_callback` on the CPU too.
      build: aicpu, aot, ffi: how a source is compiled and linked: further sources, folders of
        headers, flags and libraries, as a `Build`.

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

    # Not until __init__ ends: the methods of a subclass may be given as infer functions, which are
    # compared by the op that they belong to.
    _is_made = False

    @seam.with_hidden_frames
    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str | None = None,
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
        *,
        out: Any = None,
        attrs: Mapping[str, Any] | None = None,
        stateful: bool | Literal["ordered"] = False,
        reentrant: bool = True,
        vmap: str | Callable[..., Any] | None = None,
        forward: bool = False,
        jvp: Callable[..., Any] | None = None,
        inplace: Mapping[int, int] | None = None,
        sharding: str | None = None,
        batch_dims: int = 0,
        writable: bool | None = None,
        host: bool = False,
        dynamic_outputs: bool = False,
        cxx11_abi: bool | None = None,
        compile_attrs: Mapping[str, Any] | None = None,
        build: Build | None = None,
        **unknown: Never,
    ):
        self.__name__ = name_of(func)
        self._who = f"Custom '{self.__name__}'"
        if isinstance(func, Custom):
            raise ArgumentTypeError.explained(
                self._who,
                "expected a kernel for func; got an operator",
                "Call it as it is; the Python function of its kernel is its __wrapped__.",
            )
        if unknown:
            known = Custom.__init__.__annotations__.keys() - {"unknown", "return"}
            raise unknown_option(next(iter(unknown)), known, self._who)
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
        kernel, attrs = self._backend.prepare(func, attrs)
        self._source = self._backend.read(kernel, self._options, self._who)
        self._inference = read_inference(
            out_shape,
            out_dtype,
            self._backend.may_have_no_outputs,
            self._who,
            out,
            in_order=not self._backend.takes_trees,
        )
        self._variables = self._inference.variables()
        # A kernel file brings op info of its own.
        holder = self._source if hasattr(self._source, "reg_info") else func
        self._infos = find_op_info(reg_info, holder, self._backend, self._who)
        self._signature = self._backend.signature(self._source)
        self._positional = positional_names(self._signature)
        self._read_attributes(attrs)
        self._options = self._backend.settle(self._source, self._options, self._infos, self._who)
        self._bprop = bprop
        self._vjp: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        if callable(func):
            self.__wrapped__ = func
        self._prim_attrs: dict[str, Any] = {}
        self._programs: Programs | None = None
        # How often what the op is has changed since it was made.
        self._definitions = 0
        self._is_made = True
        # Compiled calls by number of arguments, where that number determines the structure of the
        # call: for calls with arrays only, and with Tensors only.
        self._of_arrays: dict[int, Callable[..., Any]] = {}
        self._of_tensors: dict[int, Callable[..., Any]] = {}

    def _read_attributes(self, attrs: Any) -> None:
        """Adds the attributes that are declared without op info."""
        if not self._infos:
            info = read_attributes(
                self.__name__,
                self._signature,
                attrs,
                self._backend.has_attributes_by_default,
                self._who,
            )
            self._infos = () if info is None else (info,)
        elif attrs is not None:
            raise OpInfoValueError.explained(
                self._who,
                "attrs is given together with op info",
                "Add the attributes to the op info: .attr(name, 'optional', 'float', '0.5').",
            )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the op.

        Args:
          *args: the inputs, each an array, a `Tensor`, a number, or a list of arrays ("dynamic" in
            op info); for a pyfunc also a pytree of arrays. Then the attributes, in the order in
            which op info names them.
          **kwargs: inputs and attributes by the names of the kernel's parameters; those of aicpu,
            aot and tbe kernels are in op info.

        Returns:
          One array, or a tuple of arrays, or the tree that `out` says; Tensors if an input is a
          Tensor. An op without outputs returns None, and on MindSpore's face
          ``Tensor([0], Int32)`` as MindSpore does; one made by ``out=()`` returns ``()``.
        """
        try:
            if kwargs:
                return self._call_by_name(args, kwargs)
            if self._variables is not None and not self._variables.are_same():
                self._read_variables()
            # An eager call must cost what a jnp call costs, so the two plain cases come first.
            compiled = self._of_arrays.get(len(args))
            if compiled is not None:
                for arg in args:
                    if type(arg) is not _ARRAY:
                        break
                else:
                    return compiled(args)
            compiled = self._of_tensors.get(len(args))
            if compiled is not None:
                values = [arg.value for arg in args if type(arg) is Tensor]
                if len(values) == len(args) and {*map(type, values)} == {_ARRAY}:
                    with jax.enable_x64(True):
                        return wrap(compiled(values))
            return self._call_as_given(args, {})
        except Exception as error:
            seam.hide_frames(error)
            raise

    def _call_by_name(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        return self._call_as_given(*self._place_keywords(args, keywords))

    def _place_keywords(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any], int | None]:
        """Returns what `place_keywords` does, by the names that the op has."""
        if not keywords:
            return args, {}, None
        inputs = input_names(self._signature, self._infos)
        attributes = call_attribute_names(self._infos[0]) if self._infos else ()
        return place_keywords(args, keywords, inputs, attributes, self._who)

    def _call_as_given(
        self, args: Sequence[Any], named: Mapping[str, Any], count: int | None = None
    ) -> Any:
        """Calls the op on MindSpore's face or on JAX's."""
        programs = self._resolve()
        definition = programs.operator.definition
        arrays, tensors = read_arguments(args, self._who)
        with jax.enable_x64(True) if tensors else contextlib.nullcontext():
            call, flat = sort_arguments(
                definition,
                arrays,
                named,
                count=count,
                tensors=tensors,
                positional=self._positional,
                who=self._who,
            )
            is_traced = any(isinstance(value, jax.core.Tracer) for value in flat)
            is_ordered = tensors and programs.operator.has_effect
            if is_ordered:
                note_effect(is_traced)
            if is_traced:
                # Outside the gradient's rule, so that gradients are summed over what was made
                # alike.
                alike = seam.vary_alike([jnp.asarray(value) for value in flat])
                result = programs.whole(call)(*alike)
            else:
                run = programs.compiled(call.without_values() if call.values else call)
                is_plain = call.is_plain and len(call.layout) == len(args) and not named
                if is_plain and definition.inference.has_outputs and not is_ordered:
                    with _forgetting:
                        if self._programs is programs:
                            (self._of_tensors if tensors else self._of_arrays)[len(args)] = run
                result = run(flat)
                if is_ordered:
                    # Effects are in the order of the calls, as MindSpore's are.
                    jax.block_until_ready(result)
            if not tensors:
                return result
            return Tensor([0], jnp.int32) if result is None else wrap(result)

    def _read_variables(self) -> None:
        """Reads the infer functions again, as a variable that they read was assigned anew."""
        self._variables = self._inference.variables()
        self._inference = self._inference.read_again()
        self._forget_programs()

    def _resolve(self) -> Programs:
        """Returns the op's programs; builds the kernel at the first call.

        It holds no lock: a kernel may take a minute to build, and what is read of the author's code
        may wait for other threads. Two threads that resolve an op at once get the same programs.
        """
        if self._variables is not None and not self._variables.are_same():
            self._read_variables()
        programs = self._programs
        if programs is None:
            definitions = self._definitions
            token = _resolving.set((*_resolving.get(), self))
            try:
                programs = share_programs(self._define())
            finally:
                _resolving.reset(token)
            with _forgetting:
                if self._definitions == definitions:
                    self._programs = programs
        return programs

    def _define(self) -> Definition:
        options = self._options
        if self._prim_attrs:
            options = add_side_effects(options, self._prim_attrs, self._backend)
        definition = Definition(
            name=self.__name__,
            backend=self._backend,
            kernel=self._backend.resolve(self._source, self._options, self._who),
            inference=self._inference,
            infos=self._infos,
            bprop=None if self._bprop is None else ByValue(self._bprop),
            options=options,
            prim_attrs=tuple(self._prim_attrs.items()),
            vjp=None if self._vjp is None else (ByValue(self._vjp[0]), ByValue(self._vjp[1])),
        )
        kernel = definition.kernel
        return kernel.redefine(definition) if isinstance(kernel, Redefining) else definition

    def __msops_key__(self) -> Any:
        # A bprop that calls its own op, and an infer function that is a method of it, would ask for
        # the very key that is being made.
        is_own = not self._is_made or any(op is self for op in _resolving.get())
        return id(self) if is_own else self._resolve().operator.definition

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
            raise ArgumentValueError.explained(
                self._who,
                f"expected an identifier as the name of an attribute; got {name!r}",
                "Use the name the kernel asks for, e.g. 'axis'.",
            )
        self._prim_attrs[name] = freeze_attribute(value, name, self._who)
        self._forget_programs()
        return self

    def del_prim_attr(self, name: str) -> Custom:
        """Drops an attribute that `add_prim_attr` added; returns the op."""
        if self._prim_attrs.pop(name, None) is not None:
            self._forget_programs()
        return self

    @property
    def name(self) -> str:
        """The name that all ops of this class have in MindSpore; ``__name__`` is the op's own."""
        return "Custom"

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that `add_prim_attr` added."""
        return dict(self._prim_attrs)

    def _forget_programs(self) -> None:
        """Makes the next call define the op anew, whatever other threads resolve meanwhile."""
        with _forgetting:
            self._definitions += 1
            self._programs = None
            self._of_arrays.clear()
            self._of_tensors.clear()

    def def_vjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Gives the op a rule for reverse mode, as `jax.custom_vjp.defvjp` does.

        Args:
          fwd: ``fwd(*inputs) -> (out, residuals)``, with the attributes that it has parameters for
            after the inputs; it calls the op. `residuals` is a pytree of arrays.
          bwd: ``bwd(residuals, dout)`` returns a tuple with one gradient per input, None for an
            input without a gradient.

        Raises:
          ArgumentTypeError: one is no function, or bwd takes other than two arguments.
          ArgumentValueError: the op has a rule for reverse mode.

        Example:
          >>> import jax, jax.numpy as jnp, numpy as np, msops
          >>> @msops.pyfunc(out=lambda x: x)
          ... def sine(x):
          ...     return np.sin(x)
          >>> sine.def_vjp(lambda x: (sine(x), x), lambda x, dout: (dout * jnp.cos(x),))
          >>> jax.grad(sine)(0.0)
          Array(1., dtype=float32)
        """
        for name, rule in (("fwd", fwd), ("bwd", bwd)):
            self._check_new_rule("def_vjp", name, rule)
        from msops._primitive.reverse_mode import check_bwd

        check_bwd(bwd, f"{self._who}.def_vjp")
        if self._bprop is not None or self._options.jvp is not None:
            raise self._has_rule("def_vjp")
        self._vjp = fwd, bwd
        self._forget_programs()

    def def_jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the op a rule for forward mode, as `jax.custom_jvp.defjvp` does.

        Without a `bprop`, reverse mode is its transpose.

        Args:
          rule: ``rule(primals, tangents) -> (out, tangent_out)``. Both tuples have one entry per
            argument of the call, attributes included; the tangent of an integer is a zero of
            dtype float0, that of an attribute a zero, or None if it is no number. `out` is what the
            op returns for the primals.

        Returns:
          The rule, so that it can be decorated.

        Raises:
          ArgumentTypeError: it is no function.
          ArgumentValueError: the op has a rule for forward mode, or one made by `def_vjp`.
        """
        self._check_new_rule("def_jvp", "rule", rule)
        if self._vjp is not None or self._options.jvp is not None or self._options.forward:
            raise self._has_rule("def_jvp")
        from msops._primitive.forward_mode import tangent_rule

        self._options = dataclasses.replace(self._options, jvp=ByValue(tangent_rule(rule)))
        self._forget_programs()
        return rule

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the op a rule for `jax.vmap`, as `jax.custom_batching.custom_vmap.def_vmap` does.

        Args:
          rule: ``rule(axis_size, in_batched, *inputs) -> (out, out_batched)``, as `Custom` takes it
            for `vmap`; it replaces that option.

        Returns:
          The rule, so that it can be decorated.

        Raises:
          ArgumentTypeError: it is no function.
        """
        self._check_new_rule("def_vmap", "rule", rule)
        self._options = dataclasses.replace(self._options, vmap=ByValue(rule))
        self._forget_programs()
        return rule

    def _check_new_rule(self, method: str, name: str, rule: Any) -> None:
        if not callable(rule):
            raise ArgumentTypeError.explained(
                f"{self._who}.{method}",
                f"expected a function for {name}; got {type(rule).__name__}",
                "Pass what jax.custom_vjp, jax.custom_jvp or custom_vmap would get.",
            )

    def _has_rule(self, method: str) -> ArgumentValueError:
        return ArgumentValueError.explained(
            f"{self._who}.{method}",
            "the op has a rule of differentiation already",
            "Give one of bprop=, jvp=, def_vjp and def_jvp; bprop= and def_jvp go together.",
        )

    def __eq__(self, other: object) -> bool:
        """Returns whether two ops have equal definitions; those of subclasses are themselves only.

        Equal ops that are static arguments of a jitted function share its trace.
        """
        if self is other:
            return True
        if type(self) is not Custom or type(other) is not Custom or hash(self) != hash(other):
            return False
        try:
            return self._resolve() is other._resolve()
        except MsopsError:  # a kernel that cannot be built is equal to no other
            return False

    def __hash__(self) -> int:
        # What is known without building the kernel, and stays when a rule is added.
        return hash((self.__name__, self.func_type)) if type(self) is Custom else id(self)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Explains what a call becomes in XLA, and for a loop kernel why.

        Args:
          *args: the arguments of the call: arrays, or a `jax.ShapeDtypeStruct` for each. Without
            any, the call is explained that was the latest with new shapes, dtypes or attributes:
            a call like an earlier one runs what was compiled then, and is not recorded.
          **kwargs: those that are given by name.

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
        from msops._custom.explain import explain_call

        return explain_call(self._resolve(), self._find_call(args, kwargs))

    def lower_text(self, *args: Any, stage: str = "stablehlo", **kwargs: Any) -> str:
        """Returns the text of a call at a stage of its compilation.

        Args:
          *args: as for `explain`.
          stage: "jaxpr", "stablehlo" (the input of XLA) or "hlo" (its output). For akg and hybrid
            also "ir" (the loop IR of the kernel), "marked" (each loop known as parallel, reduction
            or serial), "raised" (nests that each are one array operation), "steps" (these
            operations), "c" and "cuda" (native code). Every stage is available, whichever form
            runs; `explain` reports that. An attribute of the op with the name `stage` is given by
            position here.
          **kwargs: as for `explain`.

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
        from msops._custom.explain import lowered_text

        return lowered_text(self._resolve(), self._find_call(args, kwargs), stage)

    def cost_analysis(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Returns the cost of a call, as far as it is known without running it.

        Corresponds to ``jax.stages.Compiled.cost_analysis``, which cannot look into a kernel that
        is a custom call.

        Args:
          *args: as for `explain`.
          **kwargs: as for `explain`.

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
        from msops._custom.explain import cost_of_call

        return cost_of_call(self._resolve(), self._find_call(args, kwargs))

    def _find_call(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Call, Sequence[Any]] | None:
        if not args and not keywords:
            return None
        from msops._custom.explain import stand_in

        placed, named, count = self._place_keywords(args, keywords)
        values, tensors = read_arguments(placed, self._who)
        with jax.enable_x64(True) if tensors else contextlib.nullcontext():
            arrays = jax.tree.map(lambda value: stand_in(value, self._who), list(values))
            definition = self._resolve().operator.definition
            return sort_arguments(
                definition,
                arrays,
                named,
                count=count,
                tensors=tensors,
                positional=self._positional,
                who=self._who,
            )

    def __copy__(self) -> Custom:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._prim_attrs = dict(self._prim_attrs)
        twin._of_arrays, twin._of_tensors = {}, {}
        return twin

    def __deepcopy__(self, memo: Any) -> Custom:
        # Cells are copied with their ops. A kernel is what it is; only added attributes are own.
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        from msops._custom.pickling import travelling_state

        return travelling_state(self.__dict__, self._who)

    def __setstate__(self, state: dict[str, Any]) -> None:
        from msops._custom.pickling import kernel_function

        self.__dict__.update(state)
        self._backend = find_backend(self.func_type)
        self._signature = self._backend.signature(self._source)
        self._positional = positional_names(self._signature)
        function = kernel_function(self._source)
        if function is not None:
            self.__wrapped__ = function
        self._programs = None
        self._of_arrays, self._of_tensors = {}, {}

    def __repr__(self) -> str:
        from msops._op_info import format_rows

        rows = [f"  {info.target}: {row}" for info in self._infos for row in format_rows(info)]
        return "\n".join([f"Custom('{self.__name__}', func_type='{self.func_type}')", *rows])

    def _repr_html_(self) -> str:
        from msops._custom.explain import html_table

        return html_table(self.__name__, self.func_type, self._infos)

    def _signature_of_call(self) -> inspect.Signature:
        signature = signature_of_call(self._signature, self._infos)
        if signature is None:
            # `inspect` then takes the signature of __call__.
            raise AttributeError("__signature__")
        return signature

    def _help_text(self) -> str:
        signature = signature_of_call(self._signature, self._infos)
        own = getattr(getattr(self, "__wrapped__", None), "__doc__", None)
        return help_text(self.__name__, self.func_type, signature, own, self._infos, self._options)


# An op's signature and docstring, for `help` and `inspect`, are those of its kernel.
Custom.__signature__ = OfInstance(Custom._signature_of_call)  # type: ignore[attr-defined]
Custom.__doc__ = OfInstance(Custom._help_text, Custom.__doc__)  # type: ignore[assignment]
