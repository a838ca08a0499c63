// extension_dispatch.cpp: kernels of MindSpore 2.10's API, which has no runner, and operators as
// functions.
#include <optional>
#include <string>
#include <vector>

#include "mindspore/include/custom_op_api.h"

ms::Tensor Axpy(const ms::Tensor& x, const ms::Tensor& y, double factor) {
  if (x.shape() != y.shape()) MS_EXCEPTION(mindspore::ValueError) << "shapes differ";
  ms::Tensor out(x.data_type(), x.shape());
  ms::TensorToDevice(x, factor, y);
  ms::TensorAllocate(out);
  ms::DispatchKernel([x, y, out, factor]() {
    const auto *from = x.data_ptr<float>(), *more = y.data_ptr<float>();
    auto* to = out.data_ptr<float>();
    for (size_t i = 0; i < x.numel(); ++i) to[i] = factor * from[i] + more[i];
  });
  return out;
}

std::vector<ms::Tensor> SumAndDifference(const ms::Tensor& x, const std::optional<ms::Tensor>& y) {
  ms::Tensor sum(x.data_type(), x.shape()), difference(x.data_type(), x.shape());
  ms::TensorToDevice(x, y);
  ms::TensorAllocate({sum, difference});
  ms::DispatchKernel([=]() {
    for (size_t i = 0; i < x.numel(); ++i) {
      const float other = y ? y->data_ptr<float>()[i] : 1.0f;
      sum.data_ptr<float>()[i] = x.data_ptr<float>()[i] + other;
      difference.data_ptr<float>()[i] = x.data_ptr<float>()[i] - other;
    }
  });
  return {sum, difference};
}

// x *= factor in place; with `allocates` x is named as an output.
void Scale(const ms::Tensor& x, double factor, bool allocates) {
  ms::TensorToDevice(x);
  if (allocates) ms::TensorAllocate(x);
  ms::DispatchKernel([x, factor]() {
    for (size_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] *= factor;
  });
}

// Doubles x in place without saying so, and returns what it was.
ms::Tensor Writes(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  ms::TensorToDevice(x);
  ms::TensorAllocate(out);
  ms::DispatchKernel([x, out]() {
    for (size_t i = 0; i < x.numel(); ++i) {
      out.data_ptr<float>()[i] = x.data_ptr<float>()[i];
      x.data_ptr<float>()[i] *= 2;
    }
  });
  return out;
}

// A kernel on x, which is not named.
ms::Tensor Unnamed(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  ms::TensorAllocate(out);
  ms::DispatchKernel([x, out]() {
    for (size_t i = 0; i < x.numel(); ++i) out.data_ptr<float>()[i] = x.data_ptr<float>()[i];
  });
  return out;
}

// (x + x) + x, of which the inner sum is a call within the call.
ms::Tensor Nested(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  ms::TensorToDevice(x);
  ms::TensorAllocate(out);
  ms::Tensor twice = Axpy(x, x, 1.0);
  ms::TensorToDevice(x, twice);
  ms::TensorAllocate(out);
  ms::DispatchKernel([x, twice, out]() {
    for (size_t i = 0; i < x.numel(); ++i) {
      out.data_ptr<float>()[i] = x.data_ptr<float>()[i] + twice.data_ptr<float>()[i];
    }
  });
  return out;
}

std::vector<ms::Tensor> One(const ms::Tensor& x) { return {x}; }

py::object Named(const ms::Tensor& x, const ms::Tensor& y, double factor) {
  return ms::pynative::PyboostRunner::Call<1>(std::string("Axpy"), Axpy, x, y, factor);
}

ms::Tensor Product(const ms::Tensor& x, const ms::Tensor& y, bool turn_x, bool turn_y) {
  using mindspore::BoolImm;
  return ms::Tensor(mindspore::kernel::pyboost::matmul(x.tensor(), y.tensor(),
                                                       std::make_shared<BoolImm>(turn_x),
                                                       std::make_shared<BoolImm>(turn_y)));
}

ms::Tensor Binary(const std::string& name, const ms::Tensor& x, const ms::Tensor& y) {
  namespace pyboost = mindspore::kernel::pyboost;
  const auto &a = x.tensor(), &b = y.tensor();
  if (name == "add") return ms::Tensor(pyboost::add(a, b));
  if (name == "sub") return ms::Tensor(pyboost::sub(a, b));
  if (name == "mul") return ms::Tensor(pyboost::mul(a, b));
  if (name == "div") return ms::Tensor(pyboost::div(a, b));
  if (name == "maximum") return ms::Tensor(pyboost::maximum(a, b));
  if (name == "matmul_ext") return ms::Tensor(pyboost::matmul_ext(a, b));
  if (name == "bmm_ext") return ms::Tensor(pyboost::bmm_ext(a, b));
  MS_EXCEPTION(mindspore::KeyError) << name;
}

ms::Tensor Shaped(const ms::Tensor& x) {
  namespace pyboost = mindspore::kernel::pyboost;
  auto flat = pyboost::reshape(pyboost::transpose(x.tensor(), {1, 0}), {-1});
  return ms::Tensor(
      pyboost::cast(flat, std::make_shared<mindspore::Int64Imm>(mindspore::kNumberTypeInt32)));
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("axpy", PYBOOST_CALLER(1, Axpy));
  m.def("sum_and_difference", PYBOOST_CALLER_WITH_NAME(2, SumAndDifference, "both"));
  m.def("scale", PYBOOST_CALLER(0, Scale));
  m.def("writes", PYBOOST_CALLER(1, Writes));
  m.def("unnamed", PYBOOST_CALLER(1, Unnamed));
  m.def("nested", PYBOOST_CALLER(1, Nested));
  m.def("wrong_count", PYBOOST_CALLER_WITH_NAME(2, One, "my_name"));
  m.def("named", &Named);
  m.def("product", PYBOOST_CALLER(1, Product));
  m.def("binary", PYBOOST_CALLER(1, Binary));
  m.def("shaped", PYBOOST_CALLER(1, Shaped));
}
