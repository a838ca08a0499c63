"""The loop compiler from the outside, for its tests: text of the IR in, text or arrays out.

This is the one file of the tests that imports the modules of the loop compiler. It has

* the IR: the classes of its nodes, which strategies draw kernels of, and the tables of its
  operators and functions;
* the oracle: the parser, the printer, the verifier, and the interpreter on numpy arrays;
* the front ends, which read Python functions;
* the analyses and the passes, each from a kernel to a kernel, and the pipelines they form;
* the ways out: C, CUDA C, operations of JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loop_oracle.interpret import interpret
from loop_oracle.parse import parse_body, parse_expr, parse_kernel
from loop_oracle.rules import _BINARY as BINARY_TYPES
from loop_oracle.rules import _FUNCTIONS as FUNCTION_TYPES
from loop_oracle.rules import RULES as VERIFIER_RULES
from loop_oracle.tokens import TextError
from loop_oracle.verify import IRError, verify

from msops._base.collector import collector_waits
from msops._base.dtypes import as_dtype
from msops._base.extremes import amax as amax
from msops._base.extremes import amin as amin
from msops._base.extremes import reduce_extreme as reduce_extreme
from msops._base.extremes import window_extreme as window_extreme
from msops._loops import pipeline
from msops._loops.analysis.kinds import Kinds, find_kinds
from msops._loops.analysis.polyhedral import counts
from msops._loops.analysis.polyhedral import library as isl
from msops._loops.analysis.polyhedral.bounds import check_bounds
from msops._loops.analysis.polyhedral.counts import count_operations
from msops._loops.analysis.polyhedral.dependences import Dependence, dependences
from msops._loops.analysis.polyhedral.flow import find_overwritten, find_unwritten
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.choice import Costs, Form, choose_for_cpu
from msops._loops.frontends import LoopProgram, Spec, read_kernel
from msops._loops.frontends.hybrid.grammar import ACCEPTED as ACCEPTED_SYNTAX
from msops._loops.frontends.hybrid.language import INTRINSICS
from msops._loops.frontends.source import read_source, same_code
from msops._loops.frontends.tvm import MODULES as TVM_MODULES
from msops._loops.frontends.tvm import lower as lower_tvm
from msops._loops.frontends.tvm import specialise as specialise_tvm
from msops._loops.gradient import recording
from msops._loops.gradient.explicit_indices import make_indices_explicit
from msops._loops.gradient.extremes import share_extremes
from msops._loops.gradient.gather_windows import gather_windows
from msops._loops.gradient.operands import compute_operands_once
from msops._loops.gradient.reverse import reverse
from msops._loops.gradient.rules import RULES as GRADIENT_RULES
from msops._loops.gradient.tidying import ascend
from msops._loops.ir import scalars
from msops._loops.ir.facts import kept
from msops._loops.ir.formulas import evaluate
from msops._loops.ir.functions import FUNCTIONS, Function
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Location,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import (
    BINARY,
    COMPARISONS,
    DTYPES,
    FLOATS,
    INTEGERS,
    PYTHON_SIGNS,
    SYNTAX,
    is_float,
    result_dtype,
    size_bytes,
)
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.text import body_text, expr_text, kernel_text
from msops._loops.ir.walk import (
    accesses_in,
    contents,
    expressions,
    loads,
    map_bodies,
    map_operands,
    own_expressions,
    statements,
    visit,
)
from msops._loops.passes.batching import batched
from msops._loops.passes.elements import are_apart
from msops._loops.passes.forward_locals import (
    forward_indices,
    forward_lengths,
    forward_locals,
    forward_terms,
)
from msops._loops.passes.keep_decisions import keep_decisions
from msops._loops.passes.mark_loops import mark_loops
from msops._loops.passes.nest_flat_loops import nest_flat_loops
from msops._loops.passes.plain_indices import write_out_stages
from msops._loops.passes.privatise import privatise
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.passes.split_at_pivots import split_at_pivots
from msops._loops.passes.split_running_maxima import split_running_maxima
from msops._loops.passes.version_ragged_rows import version_ragged_rows
from msops._loops.pipeline import (
    PASSES_COMMON,
    PASSES_TO_C,
    PASSES_TO_CUDA,
    PASSES_TO_JAX,
    Pass,
    adjoint,
    analyse,
    facts_of,
)
from msops._loops.pipeline import run as run_passes
from msops._loops.specialisation import Specialisation, Stages
from msops._loops.to_c import CSource, c_source
from msops._loops.to_c import cost as c_cost
from msops._loops.to_c.clean.carrying import carry_elements
from msops._loops.to_c.clean.fresh_results import write_fresh_results
from msops._loops.to_c.clean.merging import merge_branches
from msops._loops.to_c.clean.promoting import keep_in_variables
from msops._loops.to_c.lanes.lane_rows import put_rows_in_lanes
from msops._loops.to_c.lanes.searching import split_searches
from msops._loops.to_c.lanes.vectors import mark_vectors
from msops._loops.to_c.materialise import alternating, fusing
from msops._loops.to_c.materialise import columns as c_columns
from msops._loops.to_c.materialise import transposing as c_transposing
from msops._loops.to_c.materialise.alternating import alternate_arrays
from msops._loops.to_c.materialise.columns import sum_columns
from msops._loops.to_c.materialise.fusing import fuse_rows
from msops._loops.to_c.materialise.tables import tabulate_values
from msops._loops.to_c.materialise.transposing import transpose_factors
from msops._loops.to_c.materialise.workspaces import place_arrays
from msops._loops.to_c.order import triangles as c_triangles
from msops._loops.to_c.order.eliminating import update_later_elements
from msops._loops.to_c.order.jamming import unroll_and_jam
from msops._loops.to_c.order.memory_order import order_along_memory
from msops._loops.to_c.order.products import tile_products
from msops._loops.to_c.order.row_blocks import block_rows
from msops._loops.to_c.order.sharing import share_among_threads
from msops._loops.to_c.order.triangles import block_triangles
from msops._loops.to_c.order.unrolling import unroll_short_loops
from msops._loops.to_c.order.widening import widen_sums
from msops._loops.to_c.order.windows import write_out_windows
from msops._loops.to_c.ranges.padded_windows import partition_windows
from msops._loops.to_c.ranges.partitioning import partition_loops, partition_rows
from msops._loops.to_c.ranges.versioning import version_loops_over_data
from msops._loops.to_c.reduce import partial_sums
from msops._loops.to_c.reduce.deferring import defer_sums
from msops._loops.to_c.reduce.neighbours import gather_from_neighbours
from msops._loops.to_c.reduce.networks import sort_integers
from msops._loops.to_c.reduce.partial_sums import split_reductions
from msops._loops.to_c.reduce.scattering import split_updates
from msops._loops.to_c.text.names import LIBRARY
from msops._loops.to_cuda import ClearBuffer, CopyBuffer, CudaSource, Launch, cuda_source
from msops._loops.to_cuda.dialect import FROM_F16, PREAMBLE, TO_F16
from msops._loops.to_cuda.grid import mark_grids
from msops._loops.to_jax.passes.conditional_reductions import rewrite_conditional_reductions
from msops._loops.to_jax.passes.count_windows import count_windows
from msops._loops.to_jax.passes.distribute import components, distribute
from msops._loops.to_jax.passes.drop_starts import drop_starts
from msops._loops.to_jax.passes.expand_carried import expand_carried
from msops._loops.to_jax.passes.expand_locals import contract, expand_locals
from msops._loops.to_jax.printing import build
from msops._loops.to_jax.raising.describe import describe, steps_text
from msops._loops.to_jax.raising.patterns import raise_kernel
from msops._loops.to_jax.raising.steps import Contract, Convolve, Loop, Step
from msops._toolchain.generated import FLAGS, GCC_FLAGS, build_generated, flags_of_gcc
from msops._toolchain.nvrtc import find_compiler

__all__ = [
    "ACCEPTED_SYNTAX",
    "BINARY",
    "BINARY_TYPES",
    "COMPARISONS",
    "DTYPES",
    "FLAGS",
    "FLOATS",
    "FROM_F16",
    "FUNCTIONS",
    "FUNCTION_TYPES",
    "GCC_FLAGS",
    "GRADIENT_RULES",
    "INTEGERS",
    "INTRINSICS",
    "LIBRARY",
    "PASSES_COMMON",
    "PASSES_TO_C",
    "PASSES_TO_CUDA",
    "PASSES_TO_JAX",
    "PREAMBLE",
    "PYTHON_SIGNS",
    "SYNTAX",
    "TO_F16",
    "TVM_MODULES",
    "VERIFIER_RULES",
    "Binary",
    "Buffer",
    "CSource",
    "Cast",
    "ClearBuffer",
    "Const",
    "Contract",
    "Convolve",
    "CopyBuffer",
    "Costs",
    "CudaSource",
    "Dependence",
    "Expr",
    "For",
    "Form",
    "Function",
    "FunctionCall",
    "IRError",
    "If",
    "Kernel",
    "Kinds",
    "Launch",
    "Load",
    "Local",
    "Location",
    "Loop",
    "LoopProgram",
    "Pass",
    "Select",
    "Spec",
    "Specialisation",
    "Stages",
    "Step",
    "Stmt",
    "Store",
    "TextError",
    "TooComplex",
    "Unary",
    "Var",
    "Within",
    "accesses_in",
    "adjoint",
    "alternate_arrays",
    "alternating",
    "analyse",
    "are_apart",
    "as_dtype",
    "ascend",
    "batched",
    "block_rows",
    "block_triangles",
    "body_text",
    "build_generated",
    "build_jax",
    "c_columns",
    "c_cost",
    "c_source",
    "c_transposing",
    "c_triangles",
    "carry_elements",
    "check_bounds",
    "choose_for_cpu",
    "collector_waits",
    "components",
    "compute_operands_once",
    "contents",
    "contract",
    "count_operations",
    "count_windows",
    "counts",
    "cuda_source",
    "defer_sums",
    "dependences",
    "describe",
    "distribute",
    "drop_starts",
    "evaluate",
    "expand_carried",
    "expand_locals",
    "expr_text",
    "expressions",
    "facts_of",
    "find_compiler",
    "find_kinds",
    "find_overwritten",
    "find_unwritten",
    "flags_of_gcc",
    "forward_indices",
    "forward_lengths",
    "forward_locals",
    "forward_terms",
    "fuse_rows",
    "fusing",
    "gather_from_neighbours",
    "gather_windows",
    "interpret",
    "is_float",
    "isl",
    "keep_decisions",
    "keep_in_variables",
    "kept",
    "kernel_text",
    "loads",
    "lower_tvm",
    "make_indices_explicit",
    "map_bodies",
    "map_operands",
    "mark_grids",
    "mark_loops",
    "mark_vectors",
    "merge_branches",
    "nest_flat_loops",
    "nested_ranges",
    "order_along_memory",
    "own_expressions",
    "parse_body",
    "parse_expr",
    "parse_kernel",
    "partial_sums",
    "partition_loops",
    "partition_rows",
    "partition_windows",
    "pipeline",
    "place_arrays",
    "privatise",
    "put_rows_in_lanes",
    "raise_kernel",
    "read_kernel",
    "read_source",
    "recording",
    "result_dtype",
    "reverse",
    "rewrite_conditional_reductions",
    "run_passes",
    "same_code",
    "scalars",
    "share_among_threads",
    "share_extremes",
    "simplified",
    "simplify",
    "size_bytes",
    "sort_integers",
    "specialise_tvm",
    "split_at_pivots",
    "split_reductions",
    "split_running_maxima",
    "split_searches",
    "split_updates",
    "statements",
    "steps_text",
    "sum_columns",
    "tabulate_values",
    "tile_products",
    "to_raised",
    "transpose_factors",
    "unroll_and_jam",
    "unroll_short_loops",
    "update_later_elements",
    "verify",
    "version_loops_over_data",
    "version_ragged_rows",
    "visit",
    "widen_sums",
    "write_fresh_results",
    "write_out_stages",
    "write_out_windows",
]


def to_raised(kernel: Kernel) -> Kernel:
    """Returns a kernel of a front end in the raised form, which array operations are found in.

    Raises:
      TooComplex: nothing is known of the order of its loops.
    """
    return run_passes(kernel, (*PASSES_COMMON, *PASSES_TO_JAX))


def build_jax(kernel: Kernel) -> Callable[..., list[Any]]:
    """Returns the pure JAX function that a kernel is."""
    return build(kernel, raise_kernel(kernel))
