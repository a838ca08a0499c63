// add_extension.cpp: z = x + y as MindSpore's PyboostRunner, for msops and for MindSpore 2.7.
#include "add_loop.h"
#include "ms_extension/api.h"

class AddRunner : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;

  void LaunchKernel() override {
    AddLoop(static_cast<const float*>(inputs()[0].GetDataPtr()),
            static_cast<const float*>(inputs()[1].GetDataPtr()),
            static_cast<float*>(outputs()[0].GetDataPtr()),
            static_cast<int64_t>(inputs()[0].numel()));
  }
};

ms::Tensor Add(const ms::Tensor& x, const ms::Tensor& y) {
  auto z = ms::Tensor(x.data_type(), x.shape());
  auto runner = std::make_shared<AddRunner>("Add");
  runner->Run({x, y}, {z});
  return z;
}

pybind11::object CallAdd(const ms::Tensor& x, const ms::Tensor& y) {
  return ms::pynative::PyboostRunner::Call<1>(Add, x, y);
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("add", &CallAdd, "x + y", pybind11::arg("x"), pybind11::arg("y"));
}
