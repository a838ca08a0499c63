"""AotExtra: attributes in both std::string ABIs, the infer companions, MindSpore's own header."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

import jax
import native_harness as harness
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_harness import PREAMBLE, Call, build, failure, native, run, same

SOURCE = (
    PREAMBLE
    + """
#include "custom_aot_extra.h"
enum TypeId : int {};
using Shape = std::vector<int64_t>;

// Writes, as doubles, what the attributes hold.
struct Values : AotKernelData {
  std::vector<double> all;
};
template <typename Rows>
void AppendRows(std::vector<double> *to, const Rows &rows) {
  to->push_back(rows.size());
  for (const auto &row : rows) {
    to->push_back(row.size());
    to->insert(to->end(), row.begin(), row.end());
  }
}
extern "C" int ReadAllInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *values = new Values;
  extra->SetKernelData(values);
  auto &all = values->all;
  all.push_back(extra->Attr<bool>("flag"));
  all.push_back(extra->Attr<int64_t>("count"));
  all.push_back(extra->Attr<float>("scale"));
  all.push_back(extra->Attr<float>("count"));
  const auto text = extra->Attr<std::string>("a name longer than a small string holds");
  all.insert(all.end(), text.begin(), text.end());
  for (auto v : extra->Attr<std::vector<int64_t>>("axes")) all.push_back(v);
  for (auto v : extra->Attr<std::vector<float>>("weights")) all.push_back(v);
  for (auto v : extra->Attr<std::vector<float>>("axes")) all.push_back(v);
  AppendRows(&all, extra->Attr<std::vector<std::vector<int64_t>>>("pairs"));
  AppendRows(&all, extra->Attr<std::vector<std::vector<float>>>("table"));
  AppendRows(&all, extra->Attr<std::vector<std::vector<float>>>("pairs"));
  all.push_back(extra->Attr<std::vector<float>>("nothing").size());
  all.push_back(extra->HasAttr("count"));
  all.push_back(extra->HasAttr("absent"));
  all.push_back(extra->HasAttr("names"));
  return 0;
}
KERNEL(ReadAll) {
  auto *values = static_cast<Values *>(static_cast<AotExtra *>(extra)->KernelData());
  auto *out = static_cast<float *>(params[1]);
  if (int64_t(values->all.size()) > shapes[1][0]) return 1;
  for (size_t i = 0; i < values->all.size(); ++i) out[i] = values->all[i];
  for (int64_t i = values->all.size(); i < shapes[1][0]; ++i) out[i] = -1;
  return 0;
}

// Asks for `wanted` as the type that its C++ name says.
extern "C" Shape AskInferShape(int *, int64_t **, AotExtra *extra) {
  const auto as = extra->Attr<std::string>("as");
  if (as == "bool") return {extra->Attr<bool>("wanted")};
  if (as == "int64_t") return {extra->Attr<int64_t>("wanted")};
  if (as == "float") return {int64_t(extra->Attr<float>("wanted"))};
  if (as == "text") {
    const auto text = extra->Attr<std::string>("wanted");
    return Shape(text.begin(), text.end());
  }
  if (as == "ints") return extra->Attr<Shape>("wanted");
  if (as == "floats") {
    Shape bits;
    for (float value : extra->Attr<std::vector<float>>("wanted")) {
      int32_t word;
      memcpy(&word, &value, 4);
      bits.push_back(word);
    }
    return bits;
  }
  throw as;
}
extern "C" std::vector<Shape> RowsInferShape(int *, int64_t **, AotExtra *extra) {
  return extra->Attr<std::vector<Shape>>("wanted");
}

static int live_data = 0;
struct Data : AotKernelData {
  Data() { ++live_data; }
  ~Data() override { --live_data; }
};
extern "C" int LiveData() { return live_data; }
extern "C" Shape DotInferShape(int *ndims, int64_t **shapes, AotExtra *extra) {
  extra->SetKernelData(new Data);
  if (ndims[0] != 2 || ndims[1] != 0) throw std::invalid_argument("a matrix and a scalar, please");
  for (int i = 0; i < 2; ++i)
    for (int k = ndims[i]; k < 8; ++k) if (shapes[i][k] != 1) return {};
  return {shapes[0][1], shapes[0][0]};
}
extern "C" std::vector<Shape> SplitInferShape(int *ndims, int64_t **shapes, AotExtra *) {
  return {Shape(shapes[0], shapes[0] + ndims[0]), {}, {7}};
}
extern "C" TypeId DotInferType(std::vector<TypeId> types, AotExtra *extra) {
  extra->SetKernelData(new Data);
  return extra->HasAttr("as") ? TypeId(extra->Attr<int64_t>("as")) : types.at(1);
}
extern "C" std::vector<TypeId> SplitInferType(std::vector<TypeId> types, AotExtra *) {
  return {types[0], TypeId(45), types[0]};
}
"""
)


@pytest.fixture(scope="module", params=[False, True], ids=["new_string", "old_string"])
def library(request, tmp_path_factory):
    return build(tmp_path_factory.mktemp("extra"), SOURCE, "extra", old_string_abi=request.param)


def infer_shape(library, symbol, shapes=(), attributes=None, multiple=False):
    dtypes = ["float32"] * len(shapes)
    return native.infer_shape(library.hash, symbol, shapes, dtypes, attributes or {}, multiple)


def test_kernel_reads_every_type_of_attribute(library):
    attributes = {
        "flag": True,
        "count": -3,
        "scale": 0.5,
        "a name longer than a small string holds": "text that no small string would hold either",
        "axes": np.array([2, 2, 2], np.int64),
        "weights": np.array([0.25, -1.5], np.float64),
        "pairs": harness.rows([[1, 2], [], [3]], np.int64),
        "table": harness.rows([[0.5], [1.5, 2.5]], np.float64),
        "nothing": np.array([], np.int64),
        "names": {"0": "a", "1": "b"},
    }
    text = [float(ord(c)) for c in attributes["a name longer than a small string holds"]]
    expected = [1, -3, 0.5, -3, *text, 2, 2, 2, 0.25, -1.5, 2, 2, 2]
    expected += [3, 2, 1, 2, 0, 1, 3, 2, 1, 0.5, 2, 1.5, 2.5, 3, 2, 1, 2, 0, 1, 3, 0, 1, 0, 1]
    call = Call(library, "ReadAll", (jax.ShapeDtypeStruct((128,), np.float32),), attributes)
    (out,) = run(call, np.zeros(1, np.float32))
    assert out.tolist() == expected + [-1] * (128 - len(expected))


def test_missing_attribute_is_an_error_that_lists_those_there(library):
    x = np.zeros(3, np.float32)
    text = failure(Call(library, "ReadAll", same(x), {"size": 1, "flag": True}), x)
    assert "there is no attribute called count; this op has flag, size" in text
    assert "Custom 'readall' on CPU: Init threw an exception" in text
    text = failure(Call(library, "ReadAll", same(x)), x)
    assert "there is no attribute called flag; this op has none" in text


def test_attribute_of_an_unknown_dtype_is_an_error_that_names_it(library):
    x = np.zeros(3, np.float32)
    text = failure(Call(library, "ReadAll", same(x), {"scale": np.float32(1)}), x)
    assert "attribute 'scale': expected a bool, int64 or float64 scalar" in text


PYTHON_VALUES = {
    "bool": True,
    "int64_t": 3,
    "float": 2.0,
    "text": "abc",
    "ints": (1, 2),
    "floats": (1.0, 2),
}


@pytest.mark.parametrize("wanted_as", PYTHON_VALUES)
@pytest.mark.parametrize("given_as", PYTHON_VALUES)
def test_attribute_is_read_as_its_own_type_only(library, wanted_as, given_as):
    attributes = {"as": wanted_as, "wanted": PYTHON_VALUES[given_as]}
    widening = {("int64_t", "float"), ("ints", "floats")}
    if given_as == wanted_as or (given_as, wanted_as) in widening:
        assert infer_shape(library, "Ask", attributes=attributes)
    else:
        with pytest.raises(RuntimeError, match=r"attribute 'wanted' was asked for as .*, but is"):
            infer_shape(library, "Ask", attributes=attributes)


INTS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9)


@settings(max_examples=60, deadline=None)
@given(INTS, st.lists(INTS, max_size=5), st.text(max_size=40), st.lists(st.floats(width=32)))
def test_values_survive_the_way_into_a_kernel(library_pair, ints, rows, text, floats):
    for library in library_pair:

        def ask(name, value, library=library):
            return infer_shape(library, "Ask", attributes={"as": name, "wanted": value})

        assert ask("ints", tuple(ints)) == [ints]
        signed_bytes = np.frombuffer(text.encode(), np.int8).tolist()
        assert ask("text", text) == [signed_bytes]
        bits = np.array(floats, np.float32).view(np.int32)
        got = np.array(ask("floats", [*floats, 0.5])[0][:-1], np.int32)
        numbers = ~np.isnan(np.array(floats, np.float32))
        np.testing.assert_array_equal(got[numbers], bits[numbers])
        assert infer_shape(library, "Rows", attributes={"wanted": rows}, multiple=True) == rows


@pytest.fixture(scope="module")
def library_pair(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pair")
    return [build(directory, SOURCE, f"pair{old}", old_string_abi=old) for old in (False, True)]


def test_value_no_kernel_reads_is_there_all_the_same(library):
    for value in (("a", "b"), (True, False), None, {"k": 1}, ((1,), ("a",))):
        with pytest.raises(RuntimeError, match="but is a value that kernels cannot read"):
            infer_shape(library, "Ask", attributes={"as": "ints", "wanted": value})


def test_integer_beyond_64_bits_is_an_error(library):
    with pytest.raises((RuntimeError, OverflowError)):
        infer_shape(library, "Ask", attributes={"as": "int64_t", "wanted": 2**63})


def test_infer_shape_of_one_output(library):
    assert infer_shape(library, "Dot", [[2, 3], []]) == [[3, 2]]


def test_infer_shape_of_several_outputs(library):
    assert infer_shape(library, "Split", [[4, 0]], multiple=True) == [[4, 0], [], [7]]


def test_infer_type(library):
    assert native.infer_type(library.hash, "Dot", [43, 35], {}, False) == [35]
    assert native.infer_type(library.hash, "Dot", [43], {"as": 30}, False) == [30]
    assert native.infer_type(library.hash, "Split", [43], {}, True) == [43, 45, 43]


def test_exception_of_a_companion_is_an_error(library):
    with pytest.raises(RuntimeError) as caught:
        infer_shape(library, "Dot", [[2], [2]])
    assert str(caught.value).splitlines()[:2] == [
        f"DotInferShape of library extra.so ({library.hash[:12]}): threw an exception:",
        "  std::invalid_argument: a matrix and a scalar, please",
    ]
    with pytest.raises(RuntimeError, match="std::out_of_range"):
        native.infer_type(library.hash, "Dot", [43], {}, False)
    with pytest.raises(RuntimeError, match="string"):
        infer_shape(library, "Ask", attributes={"as": "nothing it knows"})


def test_missing_companion_is_an_error_of_its_own(library):
    with pytest.raises(
        native.MissingCompanionError, match="function ReadAllInferShape, found none"
    ):
        infer_shape(library, "ReadAll")
    with pytest.raises(native.MissingCompanionError, match="function ReadAllInferType, found none"):
        native.infer_type(library.hash, "ReadAll", [], {}, False)
    assert issubclass(native.MissingCompanionError, RuntimeError)


def test_kernel_data_of_a_companion_dies_with_the_question(library):
    infer_shape(library, "Dot", [[2, 3], []])
    native.infer_type(library.hash, "Dot", [43, 43], {}, False)
    with pytest.raises(RuntimeError):
        infer_shape(library, "Dot", [[2], [2]])
    assert ctypes.CDLL(str(library.path)).LiveData() == 0


def test_infer_keeps_memory_flat(library):
    attributes = {"as": "ints", "wanted": tuple(range(50))}
    for _ in range(2_000):
        infer_shape(library, "Ask", attributes=attributes)
    before = harness.resident_bytes()
    for _ in range(30_000):
        infer_shape(library, "Ask", attributes=attributes)
    assert harness.resident_bytes() - before < 4 << 20


# The kernel below sees only MindSpore's header. Its getters are private there, and read through
# Attr<T> by no one, so the test opens them up.
MINDSPORE_SOURCE = (
    PREAMBLE
    + """
#include <memory>
#include <string>
#include <vector>
namespace mindspore { struct Primitive {
  bool HasAttr(const std::string &) const { return false; }
  std::shared_ptr<int> GetAttr(const std::string &) const { return nullptr; }
  std::string ToString() const { return {}; }
};
using PrimitivePtr = std::shared_ptr<Primitive>;
struct Sink { template <typename T> Sink &operator<<(const T &) { return *this; } };
template <typename T> T GetValue(const std::shared_ptr<int> &) { return {}; } }
#define MS_EXCEPTION_IF_CHECK_FAIL(condition, text)
#define MS_EXCEPTION_IF_NULL(pointer)
#define MS_LOG(level) Sink()
#define private public
#include "custom_aot_extra.h"
#undef private
static_assert(sizeof(mindspore::AotExtra) == sizeof(void *) * 5);
using mindspore::AotExtra;
static int live_data = 0;
extern "C" int LiveData() { return live_data; }
struct Data : mindspore::AotKernelData {
  ~Data() override { --live_data; }
  std::vector<double> all;
};
extern "C" int ReadInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *data = new Data;
  ++live_data;
  extra->SetKernelData(data);
  extra->SetWorkSpace({64, 64});
  auto &all = data->all;
  all = {double(extra->HasAttr("count")), double(extra->HasAttr("absent"))};
  all.push_back(extra->GetAttrBool("flag"));
  all.push_back(extra->GetAttrInt("count"));
  all.push_back(extra->GetAttrFloat("scale"));
  all.push_back(extra->GetAttrStr("a name longer than a small string holds").size());
  for (auto v : extra->GetAttrIntVec("axes")) all.push_back(v);
  for (auto v : extra->GetAttrFloatVec("weights")) all.push_back(v);
  for (auto &row : extra->GetAttrInt2DVec("pairs")) for (auto v : row) all.push_back(v);
  for (auto &row : extra->GetAttrFloat2DVec("table")) for (auto v : row) all.push_back(v);
  return 0;
}
KERNEL(Read) {
  if (nparam != 4) return 1;
  auto *data = static_cast<const Data *>(static_cast<AotExtra *>(extra)->KernelData());
  auto *out = static_cast<float *>(params[1]);
  for (size_t i = 0; i < data->all.size(); ++i) out[i] = data->all[i];
  return static_cast<AotExtra *>(extra)->WorkSpace().size() == 2 ? int(data->all.size()) - 13 : 2;
}
"""
)


@pytest.mark.parametrize("old_string_abi", [False, True])
def test_library_built_against_mindspores_own_header_runs(tmp_path, old_string_abi):
    folder = os.environ.get("MSOPS_TEST_MINDSPORE_INCLUDE")
    if not folder:
        pytest.skip("MSOPS_TEST_MINDSPORE_INCLUDE names no folder with MindSpore's header")
    # What the header includes is MindSpore itself; the part of it that it uses is declared above.
    for name in ("ir/anf.h", "mindspore/ccsrc/include/common/utils/anfalgo.h"):
        (tmp_path / "stand_ins" / name).parent.mkdir(parents=True)
        (tmp_path / "stand_ins" / name).write_text("#pragma once\n")
    header = (Path(folder) / "custom_aot_extra.h").read_text()
    assert "class AotExtra" in header
    assert "MSOPS" not in header
    source = MINDSPORE_SOURCE.replace('"custom_aot_extra.h"', f'"{folder}/custom_aot_extra.h"')
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={0 if old_string_abi else 1}"
    flags = (f"-I{tmp_path / 'stand_ins'}", abi)
    path = harness.compile_library(tmp_path, source, "theirs", flags)
    library = harness.register(path, old_string_abi=old_string_abi)
    attributes = {
        "flag": True,
        "count": 4,
        "scale": 0.5,
        "a name longer than a small string holds": "and text",
        "axes": np.array([1, 2], np.int64),
        "weights": np.array([0.5], np.float64),
        "pairs": harness.rows([[5], [6]], np.int64),
        "table": harness.rows([[7.5, 8.5]], np.float64),
    }
    call = Call(library, "Read", (jax.ShapeDtypeStruct((13,), np.float32),), attributes)
    (out,) = run(call, np.zeros(2, np.float32))
    assert out.tolist() == [1, 0, 1, 4, 0.5, 8, 1, 2, 0.5, 5, 6, 7.5, 8.5]
    del call
    jax.clear_caches()
    gc.collect()
    assert ctypes.CDLL(str(path)).LiveData() == 0
