// functions.cpp: Functions in every way their context can be used.
#include <optional>
#include <string>
#include <vector>

#include "ms_extension.h"

namespace mindspore::pynative {
namespace autograd {

BaseTensorPtr Like(const BaseTensorPtr& x) {
  return std::make_shared<BaseTensor>(x->data_type(), x->shape());
}

BaseTensorPtr Times(const BaseTensorPtr& x, const BaseTensorPtr& y) {
  auto out = Like(x);
  custom::CustomLaunchAclnn("aclnnMul", {x, y}, {out});
  return out;
}

// What Backward was asked for, to be read by the test: bit i is input i.
int64_t asked = -1;

// x * y; saves only what is needed.
class Mul : public Function<Mul> {
 public:
  static BaseTensorPtr Forward(AutogradContext* ctx, const BaseTensorPtr& x,
                               const BaseTensorPtr& y) {
    ctx->SaveForBackward({ctx->NeedGrad(x) ? y : nullptr, ctx->NeedGrad(y) ? x : nullptr});
    return Times(x, y);
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    auto saved = ctx->GetSavedTensors();
    asked = ctx->NeedsInputGrad(0) + 2 * ctx->NeedsInputGrad(1);
    return {saved[0] ? Times(grads[0], saved[0]) : nullptr,
            saved[1] ? Times(grads[0], saved[1]) : nullptr};
  }
};

// exp(x); saves its output.
class Exp : public Function<Exp> {
 public:
  static BaseTensorPtr Forward(AutogradContext* ctx, const BaseTensorPtr& x) {
    auto out = Like(x);
    custom::CustomLaunchAclnn("aclnnExp", {x}, {out});
    ctx->SaveForBackward({out});
    return out;
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    return {Times(grads[0], ctx->GetSavedTensors()[0])};
  }
};

// (x * scale) * |x|; saves |x|, which it makes itself, and everything else in saved_data.
class Scaled : public Function<Scaled> {
 public:
  static BaseTensorPtr Forward(AutogradContext* ctx, const BaseTensorPtr& x, double scale,
                               const std::string& mode, const std::vector<int64_t>& axes) {
    auto magnitude = Like(x);
    custom::CustomLaunchAclnn("aclnnAbs", {x}, {magnitude});
    auto scaled = Like(x);
    custom::CustomLaunchAclnn("aclnnMuls", {x, MakeValue<double>(scale)}, {scaled});
    ctx->SaveForBackward({magnitude});
    ctx->saved_data["scale"] = MakeValue<double>(scale);
    ctx->saved_data["mode"] = MakeValue<std::string>(mode);
    ctx->saved_data["axes"] = MakeValue<std::vector<int64_t>>(axes);
    ctx->saved_data["magnitude"] = magnitude;
    ctx->saved_data["pair"] =
        std::make_shared<ValueTuple>(ValuePtrList{MakeValue<int64_t>(2), MakeValue<bool>(true)});
    return Times(scaled, magnitude);
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    if (GetValue<std::string>(ctx->saved_data["mode"]) != "twice") {
      MS_EXCEPTION(ValueError) << "mode was lost";
    }
    auto pair = ctx->saved_data["pair"]->cast<ValueTuplePtr>();
    if (GetValue<std::vector<int64_t>>(ctx->saved_data["axes"]).size() != 2 || !pair ||
        GetValue<int64_t>((*pair)[0]) != 2 || !GetValue<bool>((*pair)[1])) {
      MS_EXCEPTION(ValueError) << "axes or pair were lost";
    }
    auto saved = ctx->saved_data["magnitude"]->cast<BaseTensorPtr>();
    auto product = Times(grads[0], saved);
    auto out = Like(product);
    double factor = 2 * GetValue<double>(ctx->saved_data["scale"]);
    custom::CustomLaunchAclnn("aclnnMuls", {product, MakeValue<double>(factor)}, {out});
    return {out, nullptr, nullptr, nullptr};
  }
};

// (x + y, x * y), with a gradient only of what the context says there is.
class Pair : public Function<Pair> {
 public:
  static BaseTensorPtrList Forward(AutogradContext* ctx, const BaseTensorPtr& x,
                                   const BaseTensorPtr& y, bool materialize, bool constant) {
    auto sum = Like(x);
    custom::CustomLaunchAclnn("aclnnAdd", {x, y, MakeValue<int64_t>(1)}, {sum});
    auto product = Times(x, y);
    ctx->SaveForBackward({x, y});
    ctx->SetMaterializeGrads(materialize);
    ctx->saved_data["materialize"] = MakeValue<bool>(materialize);
    if (constant) ctx->MarkNonDifferentiable({product});
    return {sum, product};
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    auto saved = ctx->GetSavedTensors();
    if (GetValue<bool>(ctx->saved_data["materialize"]) && (!grads[0] || !grads[1])) {
      MS_EXCEPTION(ValueError) << "a gradient was not materialized";
    }
    BaseTensorPtrList out;
    for (size_t i = 0; i < 2; ++i) {
      auto total = grads[0];
      if (grads[1]) {
        auto part = Times(grads[1], saved[1 - i]);
        if (total) {
          auto sum = Like(part);
          custom::CustomLaunchAclnn("aclnnAdd", {total, part, MakeValue<int64_t>(1)}, {sum});
          total = sum;
        } else {
          total = part;
        }
      }
      out.push_back(total);
    }
    out.push_back(nullptr);
    out.push_back(nullptr);
    return out;
  }
};

// x *= y in place; d(x y) = (dout y, dout x), with the x of before.
class InplaceMul : public Function<InplaceMul> {
 public:
  static BaseTensorPtr Forward(AutogradContext* ctx, const BaseTensorPtr& x, const BaseTensorPtr& y,
                               bool mark) {
    auto before = Like(x);
    custom::CustomLaunchAclnn("aclnnMuls", {x, MakeValue<double>(1.0)}, {before});
    custom::CustomLaunchAclnn("aclnnInplaceMul", {x, y}, {});
    ctx->SaveForBackward({before, y});
    if (mark) ctx->MarkDirty({x});
    return x;
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    auto saved = ctx->GetSavedTensors();
    return {Times(grads[0], saved[1]), Times(grads[0], saved[0]), nullptr};
  }
};

// Returns its input; with `constant` as an output without gradient.
class Same : public Function<Same> {
 public:
  static BaseTensorPtr Forward(AutogradContext* ctx, const BaseTensorPtr& x, bool constant) {
    if (constant) ctx->MarkNonDifferentiable({x});
    return x;
  }
  static BaseTensorPtrList Backward(AutogradContext*, BaseTensorPtrList grads) {
    return {Times(grads[0], grads[0]), nullptr};
  }
};

// The sum of a list, and of a tensor that may be absent: neither is differentiated.
class Listed : public Function<Listed> {
 public:
  static BaseTensorPtr Forward(AutogradContext*, const BaseTensorPtr& x,
                               const BaseTensorPtrList& list,
                               const std::optional<BaseTensorPtr>& last) {
    auto total = x;
    auto add = [&total](const BaseTensorPtr& term) {
      auto sum = Like(total);
      custom::CustomLaunchAclnn("aclnnAdd", {total, term, MakeValue<int64_t>(1)}, {sum});
      total = sum;
    };
    for (const auto& term : list) add(term);
    if (last) add(*last);
    return total;
  }
  static BaseTensorPtrList Backward(AutogradContext*, BaseTensorPtrList grads) {
    return {grads[0], nullptr, nullptr};
  }
};

// Functions that do something wrong, by `what`.
class Wrong : public Function<Wrong> {
 public:
  static BaseTensorPtrList Forward(AutogradContext* ctx, const BaseTensorPtr& x, int64_t what) {
    ctx->saved_data["what"] = MakeValue<int64_t>(what);
    if (what == 0) return {};
    if (what == 5) ctx->MarkDirty({x});
    if (what == 6) MS_EXCEPTION(ValueError) << "refused " << what;
    return {Times(x, x)};
  }
  static BaseTensorPtrList Backward(AutogradContext* ctx, BaseTensorPtrList grads) {
    switch (GetValue<int64_t>(ctx->saved_data["what"])) {
      case 1:
        return {grads[0]};
      case 2:
        return {grads[0], grads[0]};
      case 3:
        return {std::make_shared<BaseTensor>(kNumberTypeFloat32, ShapeVector{7}), nullptr};
      case 4:
        ctx->NeedsInputGrad(1);
    }
    return {nullptr, nullptr};
  }
};

}  // namespace autograd
}  // namespace mindspore::pynative

namespace a = mindspore::pynative::autograd;
using TensorPtr = mindspore::tensor::BaseTensorPtr;

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.doc() = "Functions for tests.";
  m.def("mul", &a::Mul::Apply<a::Mul, const TensorPtr&, const TensorPtr&>, "x * y", py::arg("x"),
        py::arg("y"));
  m.def("asked", [] { return a::asked; });
  m.def("exp", [](const TensorPtr& x) { return a::Exp::Apply(x); });
  m.def(
      "scaled",
      [](const TensorPtr& x, double scale, const std::string& mode,
         const std::vector<int64_t>& axes) { return a::Scaled::Apply(x, scale, mode, axes); },
      py::arg("x"), py::arg("scale") = 3.0, py::arg("mode") = "twice",
      py::arg("axes") = std::vector<int64_t>{0, 1});
  m.def(
      "pair",
      [](const TensorPtr& x, const TensorPtr& y, bool materialize, bool constant) {
        return a::Pair::Apply(x, y, materialize, constant);
      },
      py::arg("x"), py::arg("y"), py::arg("materialize") = true, py::arg("constant") = false);
  m.def(
      "inplace_mul",
      [](const TensorPtr& x, const TensorPtr& y, bool mark) {
        return a::InplaceMul::Apply(x, y, mark);
      },
      py::arg("x"), py::arg("y"), py::arg("mark") = true);
  m.def("same", [](const TensorPtr& x, bool constant) { return a::Same::Apply(x, constant); });
  m.def("listed",
        [](const TensorPtr& x, const std::vector<TensorPtr>& list,
           const std::optional<TensorPtr>& last) { return a::Listed::Apply(x, list, last); });
  m.def("wrong", [](const TensorPtr& x, int64_t what) { return a::Wrong::Apply(x, what); });
}
