// runners.cpp: kernels on memory, and what they can ask their tensors.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ms_extension/api.h"

using ms::pynative::PyboostRunner;

// x * factor + y by way of a workspace; keeps in a member what one launch must not lose to another.
class Axpy : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  size_t CalcWorkspace() override {
    count_ = inputs()[0].numel();
    return count_ * sizeof(float);
  }
  void LaunchKernel() override {
    const float* x = inputs()[0].data_ptr<float>();
    const float* y = inputs()[1].data_ptr<float>();
    float* scaled = static_cast<float*>(workspace_ptr());
    float* z = outputs()[0].data_ptr<float>();
    if (reinterpret_cast<uintptr_t>(scaled) % 64) throw std::runtime_error("unaligned workspace");
    for (size_t i = 0; i < count_; ++i) scaled[i] = x[i] * factor;
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (size_t i = 0; i < count_; ++i) z[i] = scaled[i] + y[i];
  }
  float factor = 1;
  bool slow = false;

 private:
  size_t count_ = 0;
};

ms::Tensor RunAxpy(const ms::Tensor& x, const ms::Tensor& y, double factor, bool slow) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<Axpy>("Axpy");
  runner->factor = static_cast<float>(factor);
  runner->slow = slow;
  runner->Run({x, y}, {out});
  return out;
}

py::object CallAxpy(const ms::Tensor& x, const ms::Tensor& y, double factor, bool slow) {
  return PyboostRunner::Call<1>(RunAxpy, x, y, factor, slow);
}

// Exchanges two arrays in their own memory.
class Swap : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    for (size_t k = 0; k < 2; ++k) {
      if (inputs()[k].GetDataPtr() != outputs()[k].GetDataPtr()) {
        throw std::runtime_error("an array that is updated has two places");
      }
    }
    float* x = inputs()[0].data_ptr<float>();
    float* y = inputs()[1].data_ptr<float>();
    for (size_t i = 0; i < inputs()[0].numel(); ++i) std::swap(x[i], y[i]);
  }
};

void RunSwap(const ms::Tensor& x, const ms::Tensor& y) {
  std::make_shared<Swap>("Swap")->Run({x, y}, {x, y});
}
std::vector<ms::Tensor> Swapped(const ms::Tensor& x, const ms::Tensor& y) {
  RunSwap(x, y);
  return {x, y};
}
py::object CallSwap(const ms::Tensor& x, const ms::Tensor& y) {
  return PyboostRunner::Call<0>(RunSwap, x, y);
}
py::object CallSwapped(const ms::Tensor& x, const ms::Tensor& y) {
  return PyboostRunner::Call<2>(Swapped, x, y);
}
py::object CallThree(const ms::Tensor& x, const ms::Tensor& y) {
  return PyboostRunner::Call<3>(Swapped, x, y);
}

// Adds 1 to entry 0 of an output that holds data before.
class Bump : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override { outputs()[0].data_ptr<float>()[0] += 1; }
};

ms::Tensor RunBump(const ms::Tensor& like) {
  auto out = ms::ones(like.shape(), like.data_type());
  std::make_shared<Bump>("Bump")->Run({like}, {out});
  return out;
}

// Rows of shape, stride, offset and contiguity, then the data by its strides.
class Layout : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const ms::Tensor& x = inputs()[0];
    seen = x.stride();
    seen.push_back(x.storage_offset());
    seen.push_back(x.is_contiguous());
    const auto a = x.accessor<float, 2>();
    float* out = outputs()[0].data_ptr<float>();
    for (int64_t i = 0; i < x.shape()[0]; ++i) {
      for (int64_t j = 0; j < x.shape()[1]; ++j) {
        if (&a(i, j) != &a[i][j]) throw std::runtime_error("accessors disagree");
        out[i * x.shape()[1] + j] = a(i, j);
      }
    }
  }
  std::vector<int64_t> seen;
};

py::tuple RunLayout(const ms::Tensor& x, bool contiguous) {
  const std::vector<int64_t> outside = x.stride();
  x.SetNeedContiguous(contiguous);
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<Layout>("Layout");
  runner->Run({x, ms::Tensor()}, {out});
  return py::make_tuple(out, runner->seen, outside);
}

class Fail : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    if (odd) throw 7;
    throw std::invalid_argument("no luck");
  }
  bool odd = false;
};

ms::Tensor RunFail(const ms::Tensor& x, bool odd) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<Fail>("Fail");
  runner->odd = odd;
  runner->Run({x}, {out});
  return out;
}

// How many launches are under way at a time, over all runners of this kind.
std::atomic<int> running{0}, most_running{0};
class Meet : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const int now = ++running;
    int most = most_running;
    while (now > most && !most_running.compare_exchange_weak(most, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --running;
    outputs()[0].data_ptr<float>()[0] = inputs()[0].data_ptr<float>()[0];
  }
};
ms::Tensor RunMeet(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  std::make_shared<Meet>("Meet")->Run({x}, {out});
  return out;
}

// x * x with a gradient: a kernel in a Function.
class Square : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const float* x = inputs()[0].data_ptr<float>();
    const float* y = inputs()[1].data_ptr<float>();
    float* z = outputs()[0].data_ptr<float>();
    for (size_t i = 0; i < inputs()[0].numel(); ++i) z[i] = factor * x[i] * y[i];
  }
  float factor = 1;
};

namespace mindspore::pynative::autograd {
TensorPtr Product(const TensorPtr& x, const TensorPtr& y, float factor) {
  auto out = std::make_shared<tensor::Tensor>(x->data_type(), x->shape());
  auto runner = std::make_shared<Square>("Square");
  runner->factor = factor;
  runner->Run({ms::Tensor(x), ms::Tensor(y)}, {ms::Tensor(out)});
  return out;
}
class SquareFunction : public Function<SquareFunction> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x) {
    ctx->SaveForBackward({x});
    return Product(x, x, 1);
  }
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    return {Product(grads[0], ctx->GetSavedTensors()[0], 2)};
  }
};

// x * y by a kernel, whose gradient calls the function again and so has one, too.
class ProductFunction : public Function<ProductFunction> {
 public:
  static TensorPtr Forward(AutogradContext* ctx, const TensorPtr& x, const TensorPtr& y) {
    ctx->SaveForBackward({x, y});
    return Product(x, y, 1);
  }
  static TensorPtrList Backward(AutogradContext* ctx, TensorPtrList grads) {
    auto saved = ctx->GetSavedTensors();
    return {Apply(grads[0], saved[1]), Apply(grads[0], saved[0])};
  }
};
}  // namespace mindspore::pynative::autograd

// A class bound by pybind11, with a method of tensors.
struct Scale {
  explicit Scale(double factor) : factor(factor) {}
  ms::Tensor Apply(const ms::Tensor& x) const { return RunAxpy(x, x, factor, false); }
  double factor;
};

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("axpy", &CallAxpy, "x * factor + y", py::arg("x"), py::arg("y"), py::arg("factor") = 1.0,
        py::arg("slow") = false);
  m.def("axpy_by_caller", PYBOOST_CALLER(1, RunAxpy));
  m.def("swap", &CallSwap);
  m.def("swapped", &CallSwapped);
  m.def("three", &CallThree);
  m.def("bump", &RunBump);
  m.def("layout", &RunLayout);
  m.def("fail", &RunFail, py::arg("x"), py::arg("odd") = false);
  m.def("meet", &RunMeet);
  m.def("most_running", [] { return most_running.exchange(0); });
  m.def("square", [](const mindspore::tensor::TensorPtr& x) {
    return mindspore::pynative::autograd::SquareFunction::Apply(x);
  });
  m.def("product",
        [](const mindspore::tensor::TensorPtr& x, const mindspore::tensor::TensorPtr& y) {
          return mindspore::pynative::autograd::ProductFunction::Apply(x, y);
        });
  m.def("cube", [](const mindspore::tensor::TensorPtr& x) {
    using mindspore::pynative::autograd::ProductFunction;
    return ProductFunction::Apply(ProductFunction::Apply(x, x), x);
  });
  m.def("peek", [](const ms::Tensor& x) { return x.data_ptr<float>()[0]; });
  m.def("poke", [](const ms::Tensor& x) {
    x.data_ptr<float>()[0] = 42;
    return x;
  });
  m.def("not_shared", [](const ms::Tensor& x) {
    Bump runner("Bump");
    runner.Run({x}, {x});
  });
  m.def("no_outputs", [](const ms::Tensor& x) { std::make_shared<Bump>("Bump")->Run({x}, {}); });
  auto inner = m.def_submodule("inner");
  inner.def("bump", &RunBump);
  py::class_<Scale>(m, "Scale").def(py::init<double>()).def("__call__", &Scale::Apply);
}
