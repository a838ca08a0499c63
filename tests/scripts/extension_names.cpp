// extension_names.cpp: names of MindSpore's C++ API in all the places where code finds them.
#include <map>
#include <string>

#include "ms_extension/api.h"

ShapeVector ShapeOf(const ms::Tensor& x) { return x.shape(); }

std::string NameOf(int64_t type_id, bool to_lower) {
  return mindspore::TypeIdToString(static_cast<ms::TypeId>(type_id), to_lower);
}

void Raise(int64_t kind) {
  MS_EXCEPTION(static_cast<mindspore::ExceptionType>(kind)) << "kind " << kind;
}

namespace mindspore {
Tensor* Look(const TensorPtr& x) { return x.get(); }

int64_t Rank(const tensor::TensorPtr& x) {
  if (Look(x)->shape().empty()) MS_EXCEPTION(ValueError) << "no axes";
  return static_cast<int64_t>(x->shape().size());
}
}  // namespace mindspore

namespace mindspore::pynative::autograd {
TensorPtr Like(const TensorPtr& x, TypeId type_id) {
  if (type_id == kNumberTypeBool) MS_EXCEPTION(mindspore::TypeError) << TypeIdToString(type_id);
  return std::make_shared<Tensor>(type_id, ShapeVector(x->shape().rbegin(), x->shape().rend()));
}
}  // namespace mindspore::pynative::autograd

int64_t LikeSize(const ms::Tensor& x, int64_t type_id) {
  auto like = mindspore::pynative::autograd::Like(x.tensor(), static_cast<ms::TypeId>(type_id));
  return like->shape()[0] * 1000 + like->data_type();
}

int64_t RankOf(const ms::Tensor& x) { return mindspore::Rank(x.tensor()); }

void Check(const std::string& what) {
  int* nothing = nullptr;
  if (what == "null") MS_EXCEPTION_IF_NULL(nothing);
  if (what == "zero") MS_EXCEPTION_IF_ZERO("size", what.size() - 4);
  if (what == "internal") MS_LOG(INTERNAL_EXCEPTION) << "inside";
  if (what == "global") MS_EXCEPTION(mindspore::KeyError) << what;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("shape", &ShapeOf);
  m.def("name", &NameOf);
  m.def("raise_kind", &Raise);
  m.def("rank", &RankOf);
  m.def("like_size", &LikeSize);
  m.def("check", &Check);
}
