// sparse_tensor.h: a sparse tensor in coordinate form: indices [entries, axes] and values.
#ifndef MSOPS_AICPU_UTILS_SPARSE_TENSOR_H_
#define MSOPS_AICPU_UTILS_SPARSE_TENSOR_H_

#include "eigen_tensor.h"
#include "sparse_group.h"

#if __has_include(<unsupported/Eigen/CXX11/Tensor>)

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace aicpu {

// Returns a copy that is read once: another thread may write to the original meanwhile, which the
// compiler must not read again after a check.
template <typename T>
const T SubtleMustCopy(const T& x) {
  return *static_cast<const volatile T*>(&x);
}

class SparseTensor {
 public:
  SparseTensor() = default;
  ~SparseTensor() = default;

  // `ix` holds int32 or int64 and is a matrix or, with one axis, a vector; `values` has an entry
  // per row or is a scalar. `order` lists the axes by which the entries are sorted.
  uint32_t CreateSparseTensor(Tensor* ix, Tensor* values, std::vector<int64_t> shape,
                              std::vector<int64_t> order) {
    KERNEL_CHECK_FALSE(ix && values, KERNEL_STATUS_PARAM_INVALID,
                       "A sparse tensor needs indices and values.")
    const auto index_shape = ix->GetTensorShape();
    const int64_t rank = index_shape->GetDims();
    KERNEL_CHECK_FALSE(rank <= 2 && values->GetTensorShape()->GetDims() <= 1,
                       KERNEL_STATUS_PARAM_INVALID,
                       "Sparse indices must have at most two axes and values at most one, but "
                       "have %d and %d.",
                       static_cast<int>(rank), values->GetTensorShape()->GetDims())
    const int64_t entries = rank == 0 ? 1 : index_shape->GetDimSize(0);
    const int64_t axes = rank == 2 ? index_shape->GetDimSize(1) : 1;
    const bool is_scalar = values->GetTensorShape()->GetDims() == 0;
    KERNEL_CHECK_FALSE(is_scalar || values->NumElements() == entries, KERNEL_STATUS_PARAM_INVALID,
                       "Sparse values must be as many as the indices, %lld, but are %lld.",
                       static_cast<long long>(entries),
                       static_cast<long long>(values->NumElements()))
    KERNEL_CHECK_FALSE(axes == static_cast<int64_t>(shape.size()) &&
                           (order.empty() || order.size() == shape.size()),
                       KERNEL_STATUS_PARAM_INVALID,
                       "Sparse indices, shape and order must have equal ranks, but have %lld, %zu "
                       "and %zu.",
                       static_cast<long long>(axes), shape.size(), order.size())
    const DataType dtype = ix->GetDataType();
    KERNEL_CHECK_FALSE(dtype == DT_INT32 || dtype == DT_INT64, KERNEL_STATUS_PARAM_INVALID,
                       "Sparse indices must be DT_INT32 or DT_INT64, but are %s.",
                       DTypeStr(dtype).c_str())
    ix_ = std::make_shared<EigenTensor>(ix, ix->GetData());
    vals_ = std::make_shared<EigenTensor>(values, values->GetData());
    index_tensor_ = ix;
    value_tensor_ = values;
    shape_ = std::move(shape);
    order_ = std::move(order);
    dims_ = static_cast<int32_t>(axes);
    entries_ = entries;
    return KERNEL_STATUS_OK;
  }

  uint32_t CreateSparseTensor(CpuKernelContext&, Tensor* ix, Tensor* values,
                              std::vector<int64_t> shape, std::vector<int64_t> order) {
    return CreateSparseTensor(ix, values, std::move(shape), std::move(order));
  }

  // Checks that the indices lie in the shape and, given an order, are sorted and differ.
  uint32_t IndicesValid() const {
    return index_tensor_->GetDataType() == DT_INT32 ? EigenIndicesValid<int32_t>()
                                                    : EigenIndicesValid<int64_t>();
  }
  uint32_t IndicesValid(CpuKernelContext&) const { return IndicesValid(); }
  template <typename Index>
  uint32_t EigenTensorIndicesValid(CpuKernelContext&) const {
    return IndicesValid();
  }

  // Sorts the entries by the axes `order`, in place.
  template <typename T>
  void Reorder(CpuKernelContext& ctx, const std::vector<int64_t>& order) {
    if (static_cast<int64_t>(order.size()) != dims_) {
      CUST_KERNEL_LOG_ERROR(ctx, "Reorder needs %d axes, but got %zu.", dims_, order.size());
      return;
    }
    order_ = order;
    index_tensor_->GetDataType() == DT_INT32 ? EigenReorder<int32_t, T>()
                                             : EigenReorder<int64_t, T>();
  }

  // Sorts the entries by the axes that the tensor was made with.
  template <typename Index, typename T>
  uint32_t Reorder() {
    EigenReorder<Index, T>();
    return KERNEL_STATUS_OK;
  }

  // Copies the entries, after a check that the indices lie in the shape.
  template <typename Index, typename T>
  uint32_t GetIndicesAndValues(CpuKernelContext& ctx, Tensor* indices, Tensor* values) const {
    const int64_t entries = indices->GetTensorShape()->GetDimSize(0);
    const T* const from = static_cast<const T*>(value_tensor_->GetData());
    for (int64_t i = 0; i < entries; ++i) {
      const Index* const row = Row<Index>(i);
      for (int32_t axis = 0; axis < dims_; ++axis) {
        if (row[axis] < 0 || row[axis] >= shape_[axis]) {
          CUST_KERNEL_LOG_ERROR(ctx, "indices[%lld] is out of bounds.", static_cast<long long>(i));
          return KERNEL_STATUS_PARAM_INVALID;
        }
      }
      std::copy(row, row + dims_, static_cast<Index*>(indices->GetData()) + i * dims_);
      static_cast<T*>(values->GetData())[i] = from[i];
    }
    return KERNEL_STATUS_OK;
  }

  // Returns the entries in groups that agree on the axes `group_ix`, by which they are sorted.
  GroupIterable group(const std::vector<int64_t>& group_ix) const {
    return GroupIterable(index_tensor_, value_tensor_, dims_, group_ix);
  }
  GroupIterable group(CpuKernelContext&, const std::vector<int64_t>& group_ix) const {
    return group(group_ix);
  }

  // Writes the entries into a dense tensor, cleared before; false if an index lies outside or the
  // shapes differ.
  template <typename T>
  bool ToDense(Tensor* out, bool initialize = true) {
    return index_tensor_->GetDataType() == DT_INT32 ? EigenToDense<int32_t, T>(out, initialize)
                                                    : EigenToDense<int64_t, T>(out, initialize);
  }
  template <typename T>
  bool ToDense(CpuKernelContext&, Tensor* out, bool initialize = true) {
    return ToDense<T>(out, initialize);
  }
  // Returns a status, and writes the entries alone.
  template <typename Index, typename T>
  uint32_t ToDense(CpuKernelContext& ctx, Tensor* out) {
    if (out != nullptr && out->GetData() != nullptr && EigenToDense<Index, T>(out, false)) {
      return KERNEL_STATUS_OK;
    }
    CUST_KERNEL_LOG_ERROR(ctx,
                          "The output does not have the sparse tensor's shape, or an index "
                          "lies outside of it.");
    return KERNEL_STATUS_INNER_ERROR;
  }

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& order() const { return order_; }
  std::vector<int64_t> Shape() const { return shape_; }
  std::vector<int64_t> Order() const { return order_; }
  int32_t dims() const { return dims_; }
  int64_t num_entries() const { return entries_; }
  std::shared_ptr<EigenTensor> indices() const { return ix_; }
  std::shared_ptr<EigenTensor> values() const { return vals_; }

 private:
  template <typename Index>
  const Index* Row(int64_t entry) const {
    return static_cast<const Index*>(index_tensor_->GetData()) + entry * dims_;
  }

  template <typename Index>
  uint32_t EigenIndicesValid() const {
    for (int64_t i = 0; i < entries_; ++i) {
      const Index* const row = Row<Index>(i);
      for (int32_t axis = 0; axis < dims_; ++axis) {
        KERNEL_CHECK_FALSE(row[axis] >= 0 && row[axis] < shape_[axis], KERNEL_STATUS_PARAM_INVALID,
                           "indices[%lld, %d] is %lld, which is out of the bounds [0, %lld).",
                           static_cast<long long>(i), axis, static_cast<long long>(row[axis]),
                           static_cast<long long>(shape_[axis]))
      }
      if (i == 0 || order_.empty() || order_[0] < 0) continue;
      const int direction = Compare<Index>(i - 1, i);
      KERNEL_CHECK_FALSE(direction < 0, KERNEL_STATUS_PARAM_INVALID, "indices[%lld] is %s.",
                         static_cast<long long>(i), direction == 0 ? "repeated" : "out of order")
    }
    return KERNEL_STATUS_OK;
  }

  template <typename Index>
  int Compare(int64_t entry, int64_t other) const {
    for (const int64_t axis : order_) {
      const Index a = Row<Index>(entry)[axis], b = Row<Index>(other)[axis];
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  }

  template <typename Index, typename T>
  void EigenReorder() {
    std::vector<int64_t> entries(static_cast<size_t>(entries_));
    std::iota(entries.begin(), entries.end(), 0);
    std::stable_sort(entries.begin(), entries.end(),
                     [&](int64_t a, int64_t b) { return Compare<Index>(a, b) < 0; });
    const std::vector<Index> rows(Row<Index>(0), Row<Index>(entries_));
    T* const values = static_cast<T*>(value_tensor_->GetData());
    const bool is_scalar = value_tensor_->GetTensorShape()->GetDims() == 0;
    const std::vector<T> old(values, values + (is_scalar ? 1 : entries_));
    Index* const sorted = static_cast<Index*>(index_tensor_->GetData());
    for (int64_t i = 0; i < entries_; ++i) {
      const auto from = rows.begin() + entries[i] * dims_;
      std::copy(from, from + dims_, sorted + i * dims_);
      if (!is_scalar) values[i] = old[entries[i]];
    }
  }

  template <typename Index, typename T>
  bool EigenToDense(Tensor* out, bool initialize) const {
    if (out->GetTensorShape()->GetDimSizes() != shape_) return false;
    T* const data = static_cast<T*>(out->GetData());
    if (initialize) std::fill(data, data + out->NumElements(), T(0));
    const T* const values = static_cast<const T*>(value_tensor_->GetData());
    const bool is_scalar = value_tensor_->GetTensorShape()->GetDims() == 0;
    for (int64_t i = 0; i < entries_; ++i) {
      int64_t position = 0;
      for (int32_t axis = 0; axis < dims_; ++axis) {
        const Index index = Row<Index>(i)[axis];
        if (index < 0 || index >= shape_[axis]) return false;
        position = position * shape_[axis] + index;
      }
      data[position] = values[is_scalar ? 0 : i];
    }
    return true;
  }

  std::shared_ptr<EigenTensor> ix_;
  std::shared_ptr<EigenTensor> vals_;
  Tensor* index_tensor_ = nullptr;
  Tensor* value_tensor_ = nullptr;
  std::vector<int64_t> shape_;
  std::vector<int64_t> order_;
  int32_t dims_ = 0;
  int64_t entries_ = 0;
};

}  // namespace aicpu

#endif

#endif  // MSOPS_AICPU_UTILS_SPARSE_TENSOR_H_
