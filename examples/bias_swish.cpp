// bias_swish.cpp: a layer in C++ with its gradient, y = s(x + b) with s(z) = z * sigmoid(z).
//
// Two kernels on memory (PyboostRunner), tied together by a Function: MindSpore's extension API.
#include <cmath>
#include <memory>

#include "ms_extension/api.h"

namespace {

float Sigmoid(float z) { return 1 / (1 + std::exp(-z)); }

// Row-major rows of x, each as long as the bias.
class Forward : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const auto x = inputs()[0].accessor<float, 2>();
    const float* bias = inputs()[1].data_ptr<float>();
    const auto y = outputs()[0].accessor<float, 2>();
    for (int64_t i = 0; i < inputs()[0].shape()[0]; ++i) {
      for (int64_t j = 0; j < inputs()[0].shape()[1]; ++j) {
        const float z = x(i, j) + bias[j];
        y(i, j) = z * Sigmoid(z);
      }
    }
  }
};

// ds/dz = sigmoid(z) (1 + z (1 - sigmoid(z))); the bias gets the sum over the rows.
class Backward : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const auto dy = inputs()[0].accessor<float, 2>();
    const auto x = inputs()[1].accessor<float, 2>();
    const float* bias = inputs()[2].data_ptr<float>();
    const auto dx = outputs()[0].accessor<float, 2>();
    float* dbias = outputs()[1].data_ptr<float>();
    for (int64_t j = 0; j < inputs()[1].shape()[1]; ++j) {
      dbias[j] = 0;
      for (int64_t i = 0; i < inputs()[1].shape()[0]; ++i) {
        const float z = x(i, j) + bias[j], s = Sigmoid(z);
        dx(i, j) = dy(i, j) * s * (1 + z * (1 - s));
        dbias[j] += dx(i, j);
      }
    }
  }
};

}  // namespace

namespace mindspore::pynative::autograd {

class BiasSwish : public Function<BiasSwish> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x, const TensorPtr& bias) {
    if (x->data_type() != kNumberTypeFloat32 || bias->data_type() != kNumberTypeFloat32) {
      MS_EXCEPTION(TypeError) << "bias_swish: expected float32 arrays.";
    }
    if (x->shape().size() != 2 || bias->shape() != ShapeVector{x->shape()[1]}) {
      MS_EXCEPTION(ValueError) << "bias_swish: expected x of shape (n, m) and bias of shape (m,).";
    }
    auto y = std::make_shared<tensor::Tensor>(x->data_type(), x->shape());
    std::make_shared<::Forward>("BiasSwish")
        ->Run({ms::Tensor(x), ms::Tensor(bias)}, {ms::Tensor(y)});
    ctx->SaveForBackward({x, bias});
    return y;
  }

  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    const auto saved = ctx->GetSavedTensors();
    auto dx = std::make_shared<tensor::Tensor>(saved[0]->data_type(), saved[0]->shape());
    auto dbias = std::make_shared<tensor::Tensor>(saved[1]->data_type(), saved[1]->shape());
    std::make_shared<::Backward>("BiasSwishGrad")
        ->Run({ms::Tensor(grads[0]), ms::Tensor(saved[0]), ms::Tensor(saved[1])},
              {ms::Tensor(dx), ms::Tensor(dbias)});
    return {dx, dbias};
  }
};

TensorPtr Apply(const TensorPtr& x, const TensorPtr& bias) { return BiasSwish::Apply(x, bias); }

}  // namespace mindspore::pynative::autograd

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("bias_swish", &mindspore::pynative::autograd::Apply, "swish(x + bias), with a gradient.",
        py::arg("x"), py::arg("bias"));
}
