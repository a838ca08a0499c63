// hostile.cpp: what authors should not do, and what they may do but nobody expects.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ms_extension/api.h"

using ms::pynative::PyboostRunner;

// An exception of the author's own, which pybind11 knows, and one that nobody knows.
struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Unknown {};
struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

void Throw(const std::string& what) {
  if (what == "runtime") throw std::runtime_error("a runtime error");
  if (what == "bytes") throw std::runtime_error("no \xff text, caf\xc3\xa9");
  if (what == "range") throw std::out_of_range("an index out of range");
  if (what == "argument") throw std::invalid_argument("an invalid argument");
  if (what == "memory") throw std::bad_alloc();
  if (what == "own") throw OwnError("an error of its own");
  if (what == "unknown") throw Unknown();
  if (what == "silent") throw Silent();
  if (what == "nested") {
    try {
      throw Silent();
    } catch (...) {
      std::throw_with_nested(std::runtime_error("holds a silent one"));
    }
  }
  if (what == "number") throw 7;
  if (what == "python") {
    const msops::extension::Gil gil;
    py::module_::import("no_such_module");
  }
}

// What a kernel does beside computing y = x + 1.
class Odd : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  size_t CalcWorkspace() override { return what == "workspace" ? size_t{1} << 60 : 0; }
  void LaunchKernel() override {
    Throw(what);
    if (what == "itself") Run({captured}, {captured});
    if (what == "another") {
      auto runner = std::make_shared<Odd>("Inner");
      runner->captured = captured;
      ms::Tensor out(captured.data_type(), captured.shape());
      runner->Run({captured}, {out});
    }
    if (what == "new") ms::Tensor(ms::TypeId::kNumberTypeFloat32, {2, 3});
    if (what == "ones") ms::ones({4}).reshape({2, 2});
    if (what == "operator") captured.cast(ms::TypeId::kNumberTypeInt32);
    if (what == "launch") {
      mindspore::custom::CustomLaunchAclnn("aclnnExp", {captured.tensor()}, {captured.tensor()});
    }
    if (what == "input") inputs()[0].reshape({-1});
    const auto* x = static_cast<const float*>(inputs()[0].GetDataPtr());
    auto* y = static_cast<float*>(outputs()[0].GetDataPtr());
    for (size_t i = 0; i < inputs()[0].numel(); ++i) y[i] = x[i] + 1;
  }
  std::string what;
  ms::Tensor captured;
};

ms::Tensor RunOdd(const ms::Tensor& x, const std::string& what) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<Odd>("Odd");
  runner->what = what;
  runner->captured = ms::ones({2});
  runner->Run({x}, {out});
  return out;
}

// One object for all calls, which MindSpore's examples never have.
ms::Tensor RunShared(const ms::Tensor& x) {
  static const auto* const runner = new std::shared_ptr<Odd>(std::make_shared<Odd>("Shared"));
  ms::Tensor out(x.data_type(), x.shape());
  (*runner)->Run({x}, {out});
  return out;
}

namespace mindspore::pynative::autograd {

TensorPtr Unary(const char* name, const TensorPtr& x) {
  auto out = std::make_shared<tensor::Tensor>(x->data_type(), x->shape());
  custom::CustomLaunchAclnn(name, {x}, {out});
  return out;
}

TensorPtr Times(const TensorPtr& x, const TensorPtr& y) {
  auto out = std::make_shared<tensor::Tensor>(x->data_type(), x->shape());
  custom::CustomLaunchAclnn("aclnnMul", {x, y}, {out});
  return out;
}

class Sine : public Function<Sine> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x) {
    ctx->SaveForBackward({x});
    return Unary("aclnnSin", x);
  }
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    return {Times(grads[0], Unary("aclnnCos", ctx->GetSavedTensors()[0]))};
  }
};

// sin(sin(...x)) with a Function in the Forward and in the Backward of another.
class Nested : public Function<Nested> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x, int64_t depth) {
    ctx->SaveForBackward({x});
    ctx->saved_data["depth"] = MakeValue<int64_t>(depth);
    return Sine::Apply(depth == 0 ? x : Nested::Apply(x, depth - 1));
  }
  // (sin f)' = cos(f) f', f being this Function one less deep, or x.
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    auto x = ctx->GetSavedTensors()[0];
    const auto depth = GetValue<int64_t>(ctx->saved_data["depth"]);
    auto total = grads[0];
    for (int64_t level = depth; level >= 0; --level) {
      auto inner = level == 0 ? x : Nested::Apply(x, level - 1);
      total = Times(total, Unary("aclnnCos", inner));
    }
    return {total, nullptr};
  }
};

// Functions that do something wrong, by `what`.
class Bad : public Function<Bad> {
 public:
  static TensorPtrList Forward(AutogradContext* ctx, const TensorPtr& x, const std::string& what) {
    ctx->saved_data["what"] = MakeValue<std::string>(what);
    if (what == "null output") return {nullptr};
    if (what == "dirty null") ctx->MarkDirty({nullptr});
    if (what == "forward throws") throw Unknown();
    ctx->SaveForBackward({nullptr, x});
    return {Times(x, x)};
  }
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    const auto what = GetValue<std::string>(ctx->saved_data["what"]);
    if (what == "no gradients") return {};
    if (what == "wrong dtype") {
      return {ms::Tensor(grads[0]).cast(ms::TypeId::kNumberTypeInt32).tensor(), nullptr};
    }
    if (what == "backward throws") throw std::out_of_range("in backward");
    if (what == "unknown thrown") throw Unknown();
    if (what == "wrong type") GetValue<int64_t>(ctx->saved_data["what"]);
    if (what == "no such name") Unary("aclnnNothing", grads[0]);
    return {grads[0], nullptr};
  }
};

}  // namespace mindspore::pynative::autograd

namespace a = mindspore::pynative::autograd;
using TensorPtr = mindspore::tensor::TensorPtr;

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  py::register_local_exception<OwnError>(m, "OwnError", PyExc_LookupError);
  m.def("throw", &Throw);
  m.def("odd", &RunOdd, py::arg("x"), py::arg("what"));
  m.def("shared", &RunShared);
  m.def("count", [](const std::vector<ms::Tensor>& tensors) { return tensors.size(); });
  m.def("count_pointers", [](const std::vector<TensorPtr>& tensors) {
    int64_t there = 0;
    for (const auto& tensor : tensors) there += tensor != nullptr;
    return there;
  });
  m.def("scaled", [](const ms::Tensor& x, int32_t n, double factor, const std::string& mode) {
    return mode == "n" ? x.repeat_interleave(n) : ms::tensor(factor);
  });
  m.def("same", [](const ms::Tensor& x) { return x; });
  m.def("undefined_output",
        [](const ms::Tensor& x) { std::make_shared<Odd>("Odd")->Run({x}, {ms::Tensor()}); });
  m.def("huge", [](const std::vector<int64_t>& shape) {
    return ms::Tensor(ms::TypeId::kNumberTypeFloat32, shape);
  });
  m.def("nested", [](const TensorPtr& x, int64_t depth) { return a::Nested::Apply(x, depth); });
  m.def("bad", [](const TensorPtr& x, const std::string& what) { return a::Bad::Apply(x, what); });
}
