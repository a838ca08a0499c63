// custom_aot_extra.h: what an aot kernel's companions are given beside shapes and dtypes.
//
// A kernel `int Name(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
// void* stream, void* extra)` receives an `AotExtra*` in `extra`; so do, when the library has them,
//
//   int NameInit(int* ndims, int64_t** shapes, const char** dtypes, AotExtra* extra);
//   std::vector<int64_t> NameInferShape(int* ndims, int64_t** shapes, AotExtra* extra);
//   TypeId NameInferType(std::vector<TypeId> input_types, AotExtra* extra);
//
// (InferShape and InferType return a vector of those for an op with several outputs; declare
// `enum TypeId : int {};` for the latter.) NameInit runs once per compiled call site. There it may
// read attributes, ask for workspaces, and attach a subclass of AotKernelData for later calls.
//
// The order of the virtual functions, the members and their types are MindSpore's, so a library
// built against MindSpore's header of this name runs unchanged. Source: MindSpore 2.0 to 2.7.2,
// custom_aot_extra.h.
#ifndef MSOPS_CUSTOM_AOT_EXTRA_H_
#define MSOPS_CUSTOM_AOT_EXTRA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

// Base of what NameInit keeps for the kernel. Allocate it with `new`: the host deletes it.
class AotKernelData {
 public:
  AotKernelData() = default;
  virtual ~AotKernelData() = default;
};

class AotExtra {
 public:
  AotExtra() = default;
  virtual ~AotExtra() = default;

  // Returns whether the op has an attribute called `name`.
  virtual bool HasAttr(std::string name) = 0;

  // Returns an attribute of the op. T is bool, int64_t, float, std::string, std::vector<int64_t>,
  // std::vector<float>, or a vector of one of these two vectors. An int attribute may be read as
  // float. Throws std::runtime_error if there is no such attribute, or it has another type.
  template <typename T>
  T Attr(std::string name) const;

  // Sets the sizes of the workspaces, in bytes; their pointers follow the outputs in `params`.
  void SetWorkSpace(const std::vector<size_t>& sizes_bytes) { workspace_ = sizes_bytes; }
  const std::vector<size_t>& WorkSpace() const { return workspace_; }

  // Attaches data for later calls; ownership passes to the host. Calls of a kernel with data never
  // overlap, so it may be written to.
  void SetKernelData(AotKernelData* kernel_data) { kernel_data_ = kernel_data; }
  AotKernelData* KernelData() const { return kernel_data_; }

  // Deletes the attached data. The host calls this; a kernel need not.
  void DestructKernelData() {
    delete kernel_data_;
    kernel_data_ = nullptr;
  }

 private:
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;
  virtual std::vector<float> GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) = 0;

  std::vector<size_t> workspace_;
  AotKernelData* kernel_data_{nullptr};
};

template <typename T>
T AotExtra::Attr(std::string name) const {
  // MindSpore's getters are not const although they only read.
  auto* self = const_cast<AotExtra*>(this);
  if constexpr (std::is_same_v<T, bool>) {
    return self->GetAttrBool(name);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return self->GetAttrInt(name);
  } else if constexpr (std::is_same_v<T, float>) {
    return self->GetAttrFloat(name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return self->GetAttrStr(name);
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return self->GetAttrIntVec(name);
  } else if constexpr (std::is_same_v<T, std::vector<float>>) {
    return self->GetAttrFloatVec(name);
  } else if constexpr (std::is_same_v<T, std::vector<std::vector<int64_t>>>) {
    return self->GetAttrInt2DVec(name);
  } else {
    static_assert(std::is_same_v<T, std::vector<std::vector<float>>>,
                  "Attr<T>: T must be bool, int64_t, float, std::string, or a vector or vector of "
                  "vectors of int64_t or float");
    return self->GetAttrFloat2DVec(name);
  }
}

#endif  // MSOPS_CUSTOM_AOT_EXTRA_H_
