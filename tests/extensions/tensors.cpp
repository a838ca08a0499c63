// tensors.cpp: factories, methods and arguments of ms::Tensor, and launches with LAUNCH_ACLNN.
#include <chrono>
#include <complex>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ms_extension/all.h"

ms::Tensor Method(const std::string& name, const ms::Tensor& x) {
  if (name == "cast") return x.cast(ms::TypeId::kNumberTypeInt32);
  if (name == "contiguous") return x.contiguous();
  if (name == "flatten") return x.flatten();
  if (name == "flatten12") return x.flatten(1, 2);
  if (name == "reshape") return x.reshape({4, -1});
  if (name == "repeat") return x.repeat({2, 1, 1, 3});
  if (name == "repeat_interleave") return x.repeat_interleave(2, 1);
  if (name == "repeat_all") return x.repeat_interleave(3);
  throw py::value_error("no method " + name);
}

struct Half {
  uint16_t bits;
};

// Whether the two ways to typed memory lead to that of the tensor, for a T by its name.
template <typename T>
bool Points(const ms::Tensor& x) {
  const T* data = x.data_ptr<T>();
  return data == x.GetDataPtr() && x.data_ptr<const T>() == data &&
         x.accessor<T, 1>().data_ptr() == data;
}

bool PointsTo(const ms::Tensor& x, const std::string& type) {
  if (type == "bool") return Points<bool>(x);
  if (type == "int8_t") return Points<int8_t>(x);
  if (type == "int16_t") return Points<int16_t>(x);
  if (type == "int") return Points<int>(x);
  if (type == "long") return Points<long>(x);
  if (type == "long long") return Points<long long>(x);
  if (type == "uint8_t") return Points<uint8_t>(x);
  if (type == "uint16_t") return Points<uint16_t>(x);
  if (type == "uint32_t") return Points<uint32_t>(x);
  if (type == "uint64_t") return Points<uint64_t>(x);
  if (type == "float") return Points<float>(x);
  if (type == "double") return Points<double>(x);
  if (type == "complex<float>") return Points<std::complex<float>>(x);
  if (type == "complex<double>") return Points<std::complex<double>>(x);
  if (type == "Half") return Points<Half>(x);
  if (type == "void") return x.data_ptr<void>() == x.GetDataPtr();
  throw py::value_error("no type " + type);
}

std::vector<ms::Tensor> Describe(const ms::Tensor& x) {
  return {ms::tensor(static_cast<int64_t>(x.numel()), ms::TypeId::kNumberTypeInt32),
          ms::tensor(x.stride(), ms::TypeId::kNumberTypeInt32),
          ms::tensor(static_cast<int64_t>(x.data_type()), ms::TypeId::kNumberTypeInt32)};
}

// sum(x over `axis`) by a function that is launched later, as tests of MindSpore do.
ms::Tensor Sum(const ms::Tensor& x, int64_t axis) {
  std::vector<int64_t> shape = x.shape();
  shape.erase(shape.begin() + axis);
  ms::Tensor out(x.data_type(), shape);
  auto runner = std::make_shared<ms::pynative::AclnnOpRunner>("ReduceSum");
  runner->SetLaunchFunc(
      LAUNCH_ACLNN_FUNC(aclnnReduceSum, x, std::vector<int64_t>{axis}, false, x.data_type(), out));
  runner->Run({x}, {out});
  return out;
}

// A runner and a macro of the user's own, which captures tensors.
#undef LAUNCH_ACLNN_FUNC
#define LAUNCH_ACLNN_FUNC(name, ...) \
  [=](auto* device, auto stream) { LAUNCH_ACLNN(name, device, stream, __VA_ARGS__); }

class InnerAclnnOpRunner : public ms::pynative::PyboostRunner {
 public:
  using Launch = std::function<void(mindspore::device::DeviceContext*, size_t)>;
  using PyboostRunner::PyboostRunner;
  void SetLaunchFunc(Launch launch) { launch_ = std::move(launch); }
  void LaunchKernel() override { launch_(_device_context_, _stream_id_); }

 private:
  Launch launch_;
};

ms::Tensor Mul(const ms::Tensor& x, const ms::Tensor& y) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<InnerAclnnOpRunner>("Mul");
  auto left = x.tensor(), right = y.tensor(), result = out.tensor();
  runner->SetLaunchFunc(LAUNCH_ACLNN_FUNC(aclnnMul, left, right, result));
  runner->Run({x, y}, {out});
  return out;
}

// Finds that its input is its own after other threads had the GIL; a second one it runs itself on.
class Turn : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const std::vector<int64_t> shape = inputs()[0].shape();
    {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (inputs().size() == 2) Run({inputs()[1]}, {});
    if (inputs()[0].shape() != shape) throw std::runtime_error("the inputs are another launch's");
  }
};

void TakeTurn(const ms::Tensor& x, const std::optional<ms::Tensor>& next) {
  static const auto shared = std::make_shared<Turn>("Turn");
  shared->Run({x, next.value_or(ms::Tensor())}, {});
}

// x * y as kernels of MindSpore 2.6 launch it: step by step, in a task that is dispatched.
namespace mindspore {
using kernel::pyboost::PyBoostUtils;

tensor::BaseTensorPtr MulInSteps(const tensor::BaseTensorPtr& x, const tensor::BaseTensorPtr& y) {
  auto prim = std::make_shared<Primitive>("Mul");
  auto op = std::make_shared<kernel::pyboost::OpRunner>(
      prim, runtime::OpRunner::GetDeviceContext("Ascend"));
  op->set_stream_id(PyBoostUtils::cur_stream_id());
  op->set_outputs({std::make_shared<tensor::BaseTensor>(x->data_type(), x->shape())});
  PyBoostUtils::PrepareOpInputs(op->device_context(), op->stream_id(), x, y);
  PyBoostUtils::PrepareOpOutputs(op->device_context(), op->stream_id(), op->outputs());
  PyBoostUtils::DispatchRun(std::make_shared<runtime::PyBoostDeviceTask>([op, x, y]() {
    PyBoostUtils::MallocOpInputs(op->device_context(), x, y);
    PyBoostUtils::MallocOpOutputs(op->device_context(), op->outputs());
    LAUNCH_ACLNN(aclnnMul, op->device_context(), op->stream_id(), x, y, op->output(0));
  }));
  if (op->primitive()->name() != "Mul" || op->get_op() != op) throw std::logic_error("not kept");
  return op->outputs()[0];
}
}  // namespace mindspore

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("method", &Method);
  m.def("mul_in_steps", &mindspore::MulInSteps);
  m.def("abs", &mindspore::kernel::pyboost::abs);
  m.def("tanh", &mindspore::kernel::pyboost::tanh);
  m.def("no_such_output", [] {
    mindspore::kernel::pyboost::OpRunner op(nullptr, nullptr);
    return op.output(1);
  });
  m.def("describe", &Describe);
  m.def("points_to", &PointsTo);
  m.def("chunk", [](const ms::Tensor& x, int64_t n, int64_t dim) { return x.chunk(n, dim); });
  m.def("index_select", [](const ms::Tensor& x, int64_t dim, const ms::Tensor& index) {
    return x.index_select(dim, index);
  });
  m.def("repeat",
        [](const ms::Tensor& x, const std::vector<int64_t>& repeats) { return x.repeat(repeats); });
  m.def("repeat_interleave",
        [](const ms::Tensor& x, int64_t repeats, const std::optional<int64_t>& dim,
           const std::optional<int64_t>& size) { return x.repeat_interleave(repeats, dim, size); });
  m.def("repeat_each",
        [](const ms::Tensor& x, const ms::Tensor& repeats, const std::optional<int64_t>& size) {
          return x.repeat_interleave(repeats, 0, size);
        });
  m.def("factories", [] {
    return std::vector<ms::Tensor>{
        ms::tensor(int64_t{7}), ms::tensor(std::vector<int64_t>{1, 2}),
        ms::tensor(0.5),        ms::tensor(std::vector<double>{0.25, 4}),
        ms::ones({2, 3}),       ms::zeros({2}, ms::TypeId::kNumberTypeInt8)};
  });
  m.def("zeros", [](const std::vector<int64_t>& shape) { return ms::zeros(shape); });
  m.def("ones", [](const std::vector<int64_t>& shape) { return ms::ones(shape); });
  m.def("empty", [](const std::vector<int64_t>& shape) {
    return ms::Tensor(ms::TypeId::kNumberTypeFloat32, shape);
  });
  m.def("empty_memory", [](const std::vector<int64_t>& shape) {
    return ms::Tensor(ms::TypeId::kNumberTypeFloat32, shape).GetDataPtr() != nullptr;
  });
  m.def("int8", [](int64_t value) { return ms::tensor(value, ms::TypeId::kNumberTypeInt8); });
  m.def("int8_of", [](double value) { return ms::tensor(value, ms::TypeId::kNumberTypeInt8); });
  m.def("half", [] { return ms::tensor(0.5, ms::TypeId::kNumberTypeFloat16); });
  m.def("assign", [](const ms::Tensor& x, const ms::Tensor& y) {
    x.AssignTensor(y);
    return static_cast<int64_t>(x.shape().size());
  });
  m.def("unknown_type", [] { return ms::Tensor(ms::TypeId::kTypeUnknown, {1}); });
  m.def("undefined", [] { return ms::Tensor().shape(); });
  m.def("accessor3", [](const ms::Tensor& x) { return x.accessor<float, 3>()(0, 0, 0); });
  m.def("default_or", [](const std::optional<ms::Tensor>& x, const ms::Tensor& other) {
    return x.value_or(other);
  });
  m.def("sum", &Sum);
  m.def("mul", &Mul);
  m.def("take_turn", &TakeTurn, py::arg("x"), py::arg("next") = std::nullopt);
  m.def("launch", [](const std::string& name, const std::vector<ms::Tensor>& inputs) {
    mindspore::ValuePtrList values;
    for (const auto& input : inputs) values.push_back(input.tensor());
    ms::Tensor out(inputs[0].data_type(), inputs[0].shape());
    mindspore::custom::CustomLaunchAclnn(name, values, {out.tensor()});
    return out;
  });
  m.def("log", [](bool fail) {
    MS_LOG(INFO) << "dropped " << 1;
    if (fail) MS_LOG(EXCEPTION) << "said " << 2;
    MS_EXCEPTION_IF_NULL(static_cast<void*>(nullptr));
  });
}
