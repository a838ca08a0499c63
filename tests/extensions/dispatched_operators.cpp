// dispatched_operators.cpp: operators of aclnn in functions without a runner.
#include <optional>
#include <vector>

#include "mindspore/include/custom_op_api.h"

// x * y + factor * y, of two operators; the first one's result is the second one's input.
ms::Tensor MulAdd(const ms::Tensor& x, const ms::Tensor& y, double factor) {
  ms::Tensor product(x.data_type(), x.shape()), out(x.data_type(), x.shape());
  ms::TensorToDevice(x, y);
  ms::TensorAllocate(product);
  MS_DISPATCH_ACLNN(aclnnMul, x, y, product);
  ms::TensorToDevice(product, y);
  ms::TensorAllocate(out);
  MS_DISPATCH_ACLNN(aclnnAdd, product, y, factor, out);
  return out;
}

// An operator with an absent tensor and two results, one of which nobody wants.
std::vector<ms::Tensor> Norm(const ms::Tensor& x, const std::optional<ms::Tensor>& weight) {
  ms::Tensor out(x.data_type(), x.shape());
  ms::Tensor mean(x.data_type(), {x.shape()[0], 1}), rstd(x.data_type(), {x.shape()[0], 1});
  const std::vector<int64_t> axes{x.shape()[1]};
  const std::optional<ms::Tensor> bias;
  ms::TensorToDevice(x, weight);
  ms::TensorAllocate({out, mean, rstd});
  MS_DISPATCH_ACLNN(aclnnLayerNorm, x, axes, weight, bias, 1e-5, out, mean, rstd);
  return {out, mean};
}

// x += y in place.
void AddTo(const ms::Tensor& x, const ms::Tensor& y) {
  ms::TensorToDevice(x, y);
  if (true) MS_DISPATCH_ACLNN(aclnnInplaceAdd, x, y, 1.0);
}

// A kernel on what an operator has computed, and an operator on that.
ms::Tensor SquareTwice(const ms::Tensor& x) {
  ms::Tensor once(x.data_type(), x.shape()), out(x.data_type(), x.shape());
  ms::Tensor copied(x.data_type(), x.shape());
  MS_DISPATCH_ACLNN(aclnnMul, x, x, once);
  ms::TensorToDevice(once);
  ms::TensorAllocate(copied);
  ms::DispatchKernel([once, copied]() {
    for (size_t i = 0; i < once.numel(); ++i) {
      copied.data_ptr<float>()[i] = once.data_ptr<float>()[i];
    }
  });
  MS_DISPATCH_ACLNN(aclnnMul, copied, copied, out);
  return out;
}

// Names tensors, and dispatches an operator before a kernel that names none.
ms::Tensor Forgets(const ms::Tensor& x) {
  ms::Tensor once(x.data_type(), x.shape()), out(x.data_type(), x.shape());
  ms::TensorToDevice(x);
  ms::TensorAllocate(once);
  MS_DISPATCH_ACLNN(aclnnMul, x, x, once);
  ms::DispatchKernel([x, out]() {
    for (size_t i = 0; i < x.numel(); ++i) out.data_ptr<float>()[i] = x.data_ptr<float>()[i];
  });
  return out;
}

ms::Tensor WrongShape(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), {1, 2, 3, 4});
  MS_DISPATCH_ACLNN(aclnnMul, x, x, out);
  return out;
}

ms::Tensor Unknown(const ms::Tensor& x) {
  MS_DISPATCH_ACLNN(aclnnMulOfNothing, x, x);
  return x;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("mul_add", PYBOOST_CALLER_WITH_NAME(1, MulAdd, "MulAdd"));
  m.def("norm", PYBOOST_CALLER_WITH_NAME(2, Norm, "Norm"));
  m.def("add_to", AddTo);
  m.def("square_twice", PYBOOST_CALLER(1, SquareTwice));
  m.def("forgets", PYBOOST_CALLER(1, Forgets));
  m.def("wrong_shape", PYBOOST_CALLER(1, WrongShape));
  m.def("unknown", PYBOOST_CALLER(1, Unknown));
}
