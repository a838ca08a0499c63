"""Every row of the tables of docs/tutorial/porting.md has a test that shows it."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT
from test_small_cases import DIFFERENT

import msops

PAGE = (ROOT / "docs" / "tutorial" / "porting.md").read_text()
CASES = json.loads((ROOT / "tests/oracle/small_mindspore_2_10_0.json").read_text())["found"]

_SPECIAL = "test_face_special_values.py::test_single_operations_give_mindspores_values"
SHOWN_BY = {
    # Names.
    "`ops.Custom`": "test_mindspore_scripts.py::test_script_prints_what_mindspore_printed",
    "func_type aot, pyfunc, akg, hybrid, tbe, aicpu": "test_face_seeds.py",
    "func_type aot with an operator's name": "test_aclnn.py::test_an_operator_does_what_numpy_does",
    "`ops.CustomRegOp`": "test_op_info_builders.py::test_chain_gives_the_dict_of_mindspore",
    "`custom_info_register`": "test_op_info_decorators.py",
    "`ops.kernel`": "test_kernel_decorator.py::test_the_corpus_runs_as_python",
    "`ops.CustomOpBuilder`": "test_extension_builder.py::test_it_is_where_mindspore_has_it",
    "`custom_aot_extra.h`": "test_native_extra.py",
    "`CustomOpBuilder(op_def=": "test_graph_operators.py::test_what_mindspore_accepts",
    "`bprop_getters.register": "test_graph_operators.py::"
    "test_bprop_getters_takes_names_of_graph_operators",
    "`Tensor`": "test_face_oracle.py::test_tells_the_same_of_itself",
    "`nn.Cell`": "hooks: all four",
    "layers, losses": "test_face_names.py::test_a_missing_name_gets_the_advice_that_fits",
    "`ops` functions": "test_face_oracle.py::test_computes_the_same",
    "`grad`": "test_face_oracle.py::test_differentiates_the_same",
    "`vmap`": "test_face_transformations.py::test_arrays_and_tensors_are_transformed_as_by_jax",
    "`saved_tensors_hooks`": "transformations: saved_tensors_hooks in each other",
    "`common._grad_function._Function`": "functions: value and gradient",
    "`ms.jit`": "programs: jit with keywords",
    "`set_context`": "test_face_context.py::test_defaults_are_those_of_mindspore",
    "`set_seed`": "test_face_context.py::test_set_seed_seeds_numpy_and_is_remembered",
    # By version.
    "`grad(sens_param=)`": "transformations: sens of value_and_grad",
    "`MsDispatchMode`": "test_face_names.py::test_a_missing_name_gets_the_advice_that_fits",
    "`graph.register_op_infer`": "test_face_names.py::"
    "test_a_missing_name_gets_the_advice_that_fits",
    "`prepend=`": "hooks: a prepended forward hook",
    "`always_call=`": "hooks: always_call",
    "`PYBOOST_CALLER_WITH_NAME`": "test_extension_dispatch.py::test_kernels_run_in_programs",
    "`Tensor.device`": "programs: device",
    "`Cell.to`": "programs: Cell.to with a dtype",
    # What behaves differently.
    "an op made in a loop": "test_sharing.py::test_equal_ops_share_one_operator",
    "aot sources": "test_sharing.py::test_edited_source_at_the_same_path_is_another_kernel",
    "a rebuilt `.so`": "test_aot.py::test_rebuilt_library_at_the_same_path_runs_the_new_code",
    "a wrong dtype on the CPU": "test_op_info_guard.py::"
    "test_mindspore_on_cpu_is_looser_only_in_widths_formats_and_outputs",
    "several op infos": "test_op_info_parse.py::test_malformed_op_info_is_refused_with_the_reason",
    "gradients of gradients": "differences: the gradient of a gradient of an operator",
    "forward mode": "differences: jvp of an operator with a bprop",
    "the gradient by an integer": "differences: the gradient by an integer",
    "one Tensor passed twice": "differences: one Tensor twice",
    "the gradient of an operator without": "differences: the gradient of an operator without bprop",
    "a `bprop` with too few": "differences: a bprop that returns too few",
    "`get_grad`": "transformations: get_grad of one gradient",
    "a cotangent that": "transformations: sens is missing",
    "`vmap` of a CellList": "differences: vmap of a CellList",
    "Python in a block": "transformations: recompute runs it again",
    "what `saved_tensors_hooks`": "transformations: saved_tensors_hooks of a sine",
    "`ctx.needs_input_grad`": "functions: needs_input_grad",
    "a `_Function` in a compiled": "functions: in ms.jit",
    "more gradients": "test_python_functions.py::test_more_gradients_than_arguments_are_refused",
    "a Tensor from around": "test_python_functions.py::"
    "test_a_tensor_from_around_forward_is_refused_while_it_is_differentiated",
    "a forward hook": "hooks: forward hooks of a Cell with a bprop",
    "options of `ms.jit`": "programs: it is found out at once",
    "`ms.jit` of no function": "programs: jit of no function",
    "a Tensor that was sliced": "programs: is_contiguous of a slice",
    "assigning to": "programs: assigning to a slice",
    "`add_`": "programs: add_",
    "`Tensor.data_ptr`": "programs: data_ptr",
    "`out_dtype=": "programs: out_dtype as a string",
    "a numpy array beside": "differences: a numpy array beside a Tensor",
    "a pyfunc that returns another": "differences: a pyfunc of another dtype",
    "akg and hybrid": "test_loop_ops.py::test_several_outputs_infer_themselves",
    "names of the module": "test_loop_language.py::test_constants_outside_the_kernel",
    "float16 and bfloat16": "test_native_loops_run.py::"
    "test_half_conversions_are_numpys_with_and_without_a_type_of_the_compiler",
    "an element that is never": "test_loop_ops.py::"
    "test_reading_what_was_never_written_warns_with_the_line",
    "an index of `ops.gather`": "test_face_values.py::"
    "test_gather_of_an_index_out_of_range_is_an_error",
    "NaN in `clamp`": "test_face_values.py::test_nan_passes_through_clamp",
    "NaN in `max`": _SPECIAL,
    "NaN in `relu`": _SPECIAL,
    "-0.0": _SPECIAL,
    "a float's remainder": _SPECIAL,
    "infinity over infinity": _SPECIAL,
    "a reduction of an empty": _SPECIAL,
    "integers in `pow`": _SPECIAL,
    "an integer to a negative": "test_face_values.py::test_remainders_by_0_of_integers_are_0",
    "a float that is out": _SPECIAL,
    "the slope of a cast": _SPECIAL,
    "slopes of the bounds": _SPECIAL,
    "`topk(largest=False)`": _SPECIAL,
    "the slope of `Mod`": _SPECIAL,
    "an index out of range": "test_loops_dependences.py::"
    "test_an_index_out_of_range_is_told_with_an_iteration",
    "a graph operator outside": "test_graph_operators.py::"
    "test_the_modules_own_function_serves_calls_outside_of_graphs",
    "the gradient of a graph": "test_graph_operators.py::test_a_gradient_needs_a_bprop",
    "dtypes that no row": "test_graph_operators.py::test_dtypes_outside_of_the_kernels_rows",
    "a malformed file": "test_graph_definitions.py::test_a_malformed_definition",
    "an error in a kernel": "test_hybrid_errors.py::test_carets_count_characters_in_indented_code",
    "an exception in a `LaunchKernel`": "test_extension_runners.py::test_a_kernel_that_throws",
    "a transposed Tensor": "test_extension_runners.py::"
    "test_a_transposed_tensor_arrives_in_its_own_order",
    "the gradient of a C++": "test_extension_dispatch.py::test_it_has_no_gradient_of_its_own",
    '`device_target="Ascend"`': "test_face_context.py::"
    "test_ascend_runs_on_the_default_device_and_says_so_once",
    "the array a pyfunc gets": "test_two_faces.py::"
    "test_pyfunc_gets_writable_private_copies_of_tensors",
}
"""The beginning of a row, and a test: a file, a function in it, or a small case."""


ALSO = {
    "functions: needs_input_grad in forward": "`ctx.needs_input_grad`",
    "differences: if on a Tensor": "if on a Tensor",
    "differences: a loop over a Tensor's value": "if on a Tensor",
    "differences: a bprop of another shape": "a `bprop` with too few",
    "programs: jit level 2": "options of `ms.jit`",
    "programs: jit with an unknown option": "options of `ms.jit`",
    "programs: add_ of another shape": "`add_`",
    "programs: is_contiguous of a transposed": "a Tensor that was sliced",
    "programs: is_contiguous of a permuted": "a Tensor that was sliced",
    "programs: storage_offset": "`Tensor.data_ptr`",
    "programs: a Cell in half precision": "`Cell.to`",
    "programs: to_float of nothing": "`Cell.to`",
    "transformations: jacrev by True": "a cotangent that",
    "transformations: saved_tensors_hooks that give back another dtype": "what `saved_te",
    "transformations: saved_tensors_hooks of one position": "what `saved_tensors_hooks`",
}
"""Further small cases in which msops differs, and the beginning of a row, or of a refusal."""


def rows() -> list[str]:
    """Returns what the rows of the page are about: the first cell, or the one behind a version."""
    found = []
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] not in ("MindSpore", "since", ""):
            found.append(cells[1] if re.fullmatch(r"2\.\d+", cells[0]) else cells[0])
    return found


def begins(row: str) -> list[str]:
    """Returns the longest entries of the table that a row begins with."""
    fitting = [start for start in SHOWN_BY if row.startswith(start)]
    return [start for start in fitting if len(start) == max(map(len, fitting))]


def test_every_row_has_a_test_and_every_entry_a_row() -> None:
    used = [start for row in rows() for start in begins(row)]
    assert [row for row in rows() if not begins(row)] == []
    assert sorted(used) == sorted(SHOWN_BY)


@pytest.mark.parametrize("shown", sorted(set(SHOWN_BY.values())))
def test_the_test_is_there(shown: str) -> None:
    file, _, function = shown.partition("::")
    if file.endswith(".py"):
        text = (ROOT / "tests" / file).read_text()
        assert re.search(rf"^def {function or 'test_'}", text, re.M)
    else:
        subject, _, case = shown.partition(": ")
        assert case in CASES[subject]


def test_names_that_later_versions_added_are_there_or_refused() -> None:
    assert {"device", "is_meta"} <= set(dir(msops.Tensor))
    for name in ("MsDispatchMode", "graph", "mint"):
        assert not hasattr(msops, name)
    assert not hasattr(msops.nn.Cell, "to")


def test_every_difference_of_a_small_case_is_on_the_page() -> None:
    different = {f"{subject}: {case}" for subject, cases in DIFFERENT.items() for case in cases}
    assert different - set(SHOWN_BY.values()) == set(ALSO)
    assert [start for start in ALSO.values() if start not in SHOWN_BY and start not in PAGE] == []
