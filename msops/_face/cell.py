"""Cell: MindSpore's module class, eager in PYNATIVE_MODE and compiled in GRAPH_MODE."""

from __future__ import annotations

import functools
import logging
import textwrap
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Self

import jax

from msops._face import context
from msops._face.cell_bprop import with_bprop
from msops._face.cell_hooks import CellHookHandle, CellHooks
from msops._face.compiled import Compiled
from msops._face.jit_config import JitConfig
from msops._face.parameter import Parameter, is_compiling
from msops._face.tensor import Tensor
from msops.errors import ArgumentTypeError, ArgumentValueError, explain

_log = logging.getLogger("msops.context")


class Cell:
    """A computation with Parameters and sub-Cells; subclasses define ``construct``.

    Corresponds to ``mindspore.nn.Cell``. Assigning a Parameter or a Cell to an attribute registers
    it under that name. In PYNATIVE_MODE a call runs ``construct``; in GRAPH_MODE it is compiled
    once per signature (shapes and dtypes of the arrays, values of everything else), nested Cells
    within the outer one. Parameters are inputs of the compiled program; what ``construct`` assigns
    to them comes back out. Two threads must not make the first call of one Cell at the same time.

    A subclass may define ``bprop(self, *inputs, out, dout)``. What it returns is the gradient of
    the Cell: a tuple with one entry per input, None for zero. The gradient with respect to
    Parameters that ``construct`` reads is then zero, as in MindSpore.

    Args:
      auto_prefix: whether sub-Cells' Parameters are named after the attributes they are under.

    Example:
      >>> import msops as ms
      >>> class Scale(ms.nn.Cell):
      ...     def __init__(self):
      ...         super().__init__()
      ...         self.factor = ms.Parameter(ms.Tensor(2.0))
      ...     def construct(self, x):
      ...         return x * self.factor
      >>> print(Scale()(ms.Tensor([1.0, 3.0])))
      [2. 6.]

    Source: MindSpore 2.7.2, mindspore/nn/cell.py, Cell.
    """

    def __init__(self, auto_prefix: bool = True):
        vars(self).update(
            _params=OrderedDict(),
            _cells=OrderedDict(),
            _auto_prefix=auto_prefix,
            _prefix="",
            _revision=0,
            _compiled=None,
            _hooks=None,
            _gradients={},  # compiled gradients, by what was asked for
            training=False,
            requires_grad=False,
        )

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the Cell's result; every subclass defines it.

        Raises:
          AttributeError: the subclass does not.
        """
        raise AttributeError(
            explain(
                f"Cell {self.cls_name!r}",
                "expected a method construct; it has none",
                "Define construct(self, ...) with what a call computes.",
            )
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if context.is_graph_mode():
            return self._program()(*args, **kwargs)
        with context.scope():
            return self._computation()(*args, **kwargs)

    def _computation(self) -> Callable[..., Any]:
        """Returns `construct`, with the class's `bprop` as its gradient, and with hooks."""
        compute: Callable[..., Any] = self.construct
        if hasattr(type(self), "bprop"):
            compute = with_bprop(compute, self.bprop, f"Cell {self.cls_name!r}")
        hooks = self._hooks
        if hooks is None:
            return compute

        @functools.wraps(self.construct)
        def with_hooks(*args: Any, **kwargs: Any) -> Any:
            return hooks.run(self, compute, args, kwargs)

        return with_hooks

    def _program(self) -> Compiled:
        if self._compiled is None:
            vars(self)["_compiled"] = Compiled(
                self._computation(), self.get_parameters, self._compile_state
            )
        return self._compiled

    def _compile_state(self) -> Hashable:
        """What a compiled program depends on beside its arguments: the attributes of all Cells."""
        return tuple(cell._revision for _, cell in self.cells_and_names())

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        if "_params" not in vars(self):
            raise AttributeError(
                explain(
                    f"Cell {type(self).__name__!r}",
                    f"attribute {name!r} was assigned before Cell.__init__ ran",
                    "Call super().__init__() first.",
                )
            )
        if isinstance(value, Parameter):
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Tensor) and self._params.get(name) is not None:
            self._params[name].set_data(value)
        elif isinstance(value, Cell):
            self._insert_cell(name, value)
        else:
            self._set_plain(name, value)

    def _set_plain(self, name: str, value: Any) -> None:
        for registry, kind in ((self._params, "Parameter"), (self._cells, "Cell")):
            if name in registry:
                if value is not None:
                    raise ArgumentTypeError.explained(
                        f"Cell {self.cls_name!r}",
                        f"{name!r} is a {kind}; got {type(value).__name__}",
                        f"Assign a {kind}, or delete the attribute first.",
                    )
                registry[name] = None
                self._touch()
                return
        held = jax.tree_util.tree_leaves(value)
        if is_compiling() and any(isinstance(leaf, jax.core.Tracer) for leaf in held):
            raise ArgumentValueError.explained(
                f"Cell {self.cls_name!r}",
                f"attribute {name!r} cannot keep a Tensor of a compiled construct",
                "Return it, make the attribute a Parameter, or use PYNATIVE_MODE.",
            )
        if vars(self).get(name, self) is not value:
            self._touch()
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_params", "_cells"):
            entries = vars(self).get(registry, {})
            if name in entries:
                return entries[name]
        raise AttributeError(f"Cell {type(self).__name__!r} has no attribute {name!r}.")

    def __delattr__(self, name: str) -> None:
        for registry in (self._params, self._cells):
            if name in registry:
                del registry[name]
                break
        else:
            object.__delattr__(self, name)
        self._touch()

    def _touch(self) -> None:
        vars(self)["_revision"] += 1

    def insert_param_to_cell(self, param_name: str, param: Parameter | None) -> None:
        """Registers a Parameter under a name.

        Args:
          param_name: attribute name, without dots.
          param: the Parameter; None keeps the name free.

        Raises:
          ArgumentTypeError: `param` is no Parameter, or the name no str.
          ArgumentValueError: the name holds a dot, or is empty.

        Source: MindSpore 2.7.2, mindspore/nn/cell.py, Cell.insert_param_to_cell.
        """
        _check_name(param_name)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError.explained(
                f"Cell {self.cls_name!r}",
                f"expected a Parameter for {param_name!r}; got {type(param).__name__}",
                "Wrap it: Parameter(...).",
            )
        vars(self).pop(param_name, None)
        self._cells.pop(param_name, None)
        self._params[param_name] = param
        self._touch()
        if param is not None and (self._prefix or param.has_default_name):
            param.name = self._prefix + param_name
            param.has_default_name = False

    def _insert_cell(self, name: str, cell: Cell) -> None:
        vars(self).pop(name, None)
        self._params.pop(name, None)
        self._cells[name] = cell
        self._touch()
        if self._auto_prefix:
            cell._set_prefix(f"{self._prefix}{name}.")

    def _set_prefix(self, prefix: str) -> None:
        # MindSpore renames by attribute, also Parameters that were given another name.
        vars(self)["_prefix"] = prefix
        for name, param in self._params.items():
            if param is not None:
                param.name = prefix + name
                param.has_default_name = False
        for name, cell in self._cells.items():
            if cell is not None and self._auto_prefix:
                cell._set_prefix(f"{prefix}{name}.")

    # What it holds.

    @property
    def cls_name(self) -> str:
        """Name of the class."""
        return type(self).__name__

    def cells_and_names(self, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """Yields this Cell and every one below it once, with dotted names; itself is ''."""
        yield from self._walk(name_prefix, set())

    def _walk(self, prefix: str, seen: set[int]) -> Iterator[tuple[str, Cell]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell._walk(f"{prefix}.{name}" if prefix else name, seen)

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields every Parameter once, with its dotted attribute name.

        Args:
          name_prefix: a prefix of every name.
          expand: whether Parameters of sub-Cells are yielded too.
        """
        seen = set()
        for prefix, cell in self.cells_and_names(name_prefix) if expand else [(name_prefix, self)]:
            for name, param in cell._params.items():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield (f"{prefix}.{name}" if prefix else name), param

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yields every Parameter once."""
        return (param for _, param in self.parameters_and_names(expand=expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Returns the Parameters that require a gradient."""
        return [param for param in self.get_parameters(recurse) if param.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Returns the Parameters that require no gradient."""
        return [param for param in self.get_parameters(recurse) if not param.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Returns the Parameters by their own names."""
        return OrderedDict((param.name, param) for param in self.get_parameters(recurse))

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Returns the Cells directly below by attribute name."""
        return OrderedDict((name, cell) for name, cell in self._cells.items() if cell is not None)

    def cells(self) -> Iterable[Cell]:
        """Returns the Cells directly below."""
        return self.name_cells().values()

    # How it runs.

    def set_train(self, mode: bool = True) -> Self:
        """Sets ``training`` here and below, and returns the Cell."""
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def set_grad(self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` here and below, and returns the Cell."""
        for _, cell in self.cells_and_names():
            cell.requires_grad = requires_grad
        return self

    def set_inputs(self, *inputs: Any, **named_inputs: Any) -> None:
        """Accepts the placeholders that describe dynamic shapes to MindSpore's compiler.

        Shapes are static here: a Cell is compiled once for each shape it is called with. The
        placeholders must be Tensors, and have no effect.

        Raises:
          ArgumentTypeError: an input is neither Tensor nor a plain Python value.
        """
        for entry in (*inputs, *named_inputs.values()):
            if not isinstance(entry, (Tensor, tuple, list, dict, int, float, str, type(None))):
                raise ArgumentTypeError.explained(
                    f"Cell {self.cls_name!r}",
                    f"set_inputs expected Tensors; got {type(entry).__name__}",
                    "Pass Tensor(shape=[4, None], dtype=...), say.",
                )

    def set_jit_config(self, jit_config: JitConfig) -> None:
        """Accepts settings of MindSpore's compiler, which have no effect: XLA compiles the Cell.

        Raises:
          ArgumentTypeError: `jit_config` is no `JitConfig`.
        """
        if not isinstance(jit_config, JitConfig):
            raise ArgumentTypeError.explained(
                f"Cell {self.cls_name!r}",
                f"set_jit_config expected a JitConfig; got {type(jit_config).__name__}",
                'Pass JitConfig(jit_level="O0"), say.',
            )
        _log.debug("Cell %r: a JitConfig has no effect: XLA compiles it", self.cls_name)

    # Hooks.

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> CellHookHandle:
        """Lets `hook_fn` see, and replace, the arguments of ``construct``.

        Args:
          hook_fn: ``hook_fn(cell, args)``, which returns None, a tuple of arguments, or one.
          prepend: whether it runs before the hooks that are there.
          with_kwargs: whether it is ``hook_fn(cell, args, kwargs)``, and returns None or both.

        Returns:
          A handle; its ``remove()`` removes the hook.

        Raises:
          ArgumentTypeError: `hook_fn` is not callable.

        Source: MindSpore 2.10.0, mindspore/nn/cell.py, Cell.register_forward_pre_hook.
        """
        return self._add_hook("forward_pre", hook_fn, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook_fn: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> CellHookHandle:
        """Lets `hook_fn` see, and replace, the result of ``construct``.

        Args:
          hook_fn: ``hook_fn(cell, args, output)``, which returns None or another output.
          prepend: whether it runs before the hooks that are there.
          with_kwargs: whether it is ``hook_fn(cell, args, kwargs, output)``.
          always_call: whether it runs when ``construct`` failed, too, with what is known then.

        Returns, Raises: as `register_forward_pre_hook`.

        Source: MindSpore 2.10.0, mindspore/nn/cell.py, Cell.register_forward_hook.
        """
        options = {"with_kwargs": with_kwargs, "always_call": always_call}
        return self._add_hook("forward", hook_fn, prepend=prepend, **options)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> CellHookHandle:
        """Lets `hook_fn` see, and replace, the gradients of the results.

        Args:
          hook_fn: ``hook_fn(cell, grad_output)``, which gets a tuple and returns None, a tuple, or
            one gradient.

        Returns, Raises: as `register_forward_pre_hook`.

        Source: MindSpore 2.10.0, mindspore/nn/cell.py, Cell.register_backward_pre_hook.
        """
        return self._add_hook("backward_pre", hook_fn)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> CellHookHandle:
        """Lets `hook_fn` see, and replace, the gradients of the inputs.

        It runs where an input is differentiated; the gradients of others are zeros.

        Args:
          hook_fn: ``hook_fn(cell, grad_input, grad_output)``, which gets tuples and returns None, a
            tuple, or one gradient.

        Returns, Raises: as `register_forward_pre_hook`.

        Source: MindSpore 2.10.0, mindspore/nn/cell.py, Cell.register_backward_hook.
        """
        return self._add_hook("backward", hook_fn)

    def _add_hook(self, kind: str, hook_fn: Callable[..., Any], **options: bool) -> CellHookHandle:
        if self._hooks is None:
            vars(self)["_hooks"] = CellHooks()
        handle: CellHookHandle = self._hooks.add(kind, hook_fn, self._forget_programs, **options)
        return handle

    def _forget_programs(self) -> None:
        vars(self)["_compiled"] = None
        self._touch()

    def __getstate__(self) -> dict[str, Any]:
        # A compiled program belongs to the Cell it was traced from.
        return vars(self) | {"_compiled": None, "_gradients": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def extend_repr(self) -> str:
        """Returns text that `repr` adds to the Cells below; subclasses define it."""
        return ""

    def __repr__(self) -> str:
        own = self.extend_repr()
        cells = [f"({name}): {cell!r}" for name, cell in self._cells.items()]
        if not cells and "\n" not in own:
            return f"{self.cls_name}({own})"
        text = "\n".join([own, *cells] if own else cells)
        return f"{self.cls_name}(\n{textwrap.indent(text, '  ', lambda line: True)}\n)"


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError.explained(
            "Cell", f"expected a name that is a str; got {name!r}", "Pass a str."
        )
    if not name or "." in name:
        raise ArgumentValueError.explained(
            "Cell", f"expected a name without dots; got {name!r}", "Rename it."
        )
