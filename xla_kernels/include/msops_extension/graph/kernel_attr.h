// kernel_attr.h: mindspore::kernel::KernelAttr, a row of dtypes that a kernel takes.
#ifndef MSOPS_EXTENSION_GRAPH_KERNEL_ATTR_H_
#define MSOPS_EXTENSION_GRAPH_KERNEL_ATTR_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/kernel_tensor.h"

namespace mindspore::kernel {

// KernelAttr().AddInputAttr(kNumberTypeFloat32).AddOutputAttr(kNumberTypeFloat32)
class KernelAttr {
 public:
  KernelAttr& AddInputAttr(TypeId dtype, const std::string& = "DefaultFormat") {
    inputs_.push_back(dtype);
    return *this;
  }
  // A number of that dtype: AddInputAttr(kObjectTypeNumber, kNumberTypeInt64).
  KernelAttr& AddInputAttr(TypeId, TypeId dtype, const std::string& = "DefaultFormat") {
    return AddInputAttr(dtype);
  }
  KernelAttr& AddOptionalInputAttr(TypeId dtype, const std::string& = "DefaultFormat") {
    return AddInputAttr(dtype);
  }
  KernelAttr& AddOptionalInputAttr(TypeId, TypeId dtype, const std::string& = "DefaultFormat") {
    return AddInputAttr(dtype);
  }
  KernelAttr& AddOutputAttr(TypeId dtype, const std::string& = "DefaultFormat") {
    outputs_.push_back(dtype);
    return *this;
  }
  KernelAttr& AddOutputAttr(TypeId, TypeId dtype, const std::string& = "DefaultFormat") {
    return AddOutputAttr(dtype);
  }
  // Result `output` is argument `input`, changed in place.
  KernelAttr& AddOutInRef(size_t output, size_t input) {
    references_[output] = input;
    return *this;
  }
  // The first input's dtype is that of all inputs, the first output's that of all outputs.
  KernelAttr& AddAllSameAttr(bool all_same, size_t = 1, bool = false) {
    all_same_ = all_same;
    return *this;
  }
  KernelAttr& AddSkipCheckAttr(bool skip_check) {
    skip_check_ = skip_check;
    return *this;
  }

  // Whether arguments and results of these dtypes match; one that is absent has kMetaTypeNone.
  bool Takes(const KernelAttr& given) const {
    return skip_check_ || (Match(inputs_, given.inputs_) && Match(outputs_, given.outputs_));
  }
  const std::map<size_t, size_t>& GetOutInRefMap() const { return references_; }

  // "(Float32, Int64) -> Float32"
  std::string ToString() const { return "(" + Join(inputs_) + ") -> " + Join(outputs_); }

 private:
  bool Match(const std::vector<TypeId>& row, const std::vector<TypeId>& given) const {
    if (all_same_ ? row.empty() : row.size() != given.size()) return false;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != kMetaTypeNone && given[i] != row[all_same_ ? 0 : i]) return false;
    }
    return true;
  }
  static std::string Join(const std::vector<TypeId>& dtypes) {
    std::string text;
    for (const TypeId dtype : dtypes) {
      if (!text.empty()) text += ", ";
      if (dtype == kMetaTypeNone || dtype == kObjectTypeString) {
        text += dtype == kMetaTypeNone ? "None" : "String";
      } else {
        text += msops::extension::NameOf(dtype);
      }
    }
    return text;
  }

  std::vector<TypeId> inputs_;
  std::vector<TypeId> outputs_;
  std::map<size_t, size_t> references_;
  bool all_same_ = false;
  bool skip_check_ = false;
};

// The dtypes of a call.
inline KernelAttr GetKernelAttrFromTensors(const std::vector<KernelTensor*>& inputs,
                                           const std::vector<KernelTensor*>& outputs) {
  KernelAttr given;
  for (const KernelTensor* const input : inputs) given.AddInputAttr(input->dtype_id());
  for (const KernelTensor* const output : outputs) given.AddOutputAttr(output->dtype_id());
  return given;
}

// Whether a row takes these dtypes, and which is the first.
inline std::pair<bool, size_t> MatchKernelAttr(const KernelAttr& given,
                                               const std::vector<KernelAttr>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].Takes(given)) return {true, i};
  }
  return {false, 0};
}

}  // namespace mindspore::kernel

#endif  // MSOPS_EXTENSION_GRAPH_KERNEL_ATTR_H_
