// sparse_group.h: the entries of a sparse tensor in groups that agree on some axes.
#ifndef MSOPS_AICPU_UTILS_SPARSE_GROUP_H_
#define MSOPS_AICPU_UTILS_SPARSE_GROUP_H_

#include "eigen_tensor.h"

#if __has_include(<unsupported/Eigen/CXX11/Tensor>)

#include <cstdint>
#include <vector>

namespace aicpu {

class GroupIterable;

// Entries next to each other that have the same indices on the axes grouped by.
class Group {
 public:
  Group(const GroupIterable* iterable, int64_t begin, int64_t end)
      : iterable_(iterable), begin_(begin), end_(end) {}

  // Returns the indices that the entries share, an axis each.
  inline std::vector<int64_t> group() const;
  // Returns the index of the first entry on an axis.
  inline int64_t group_at(size_t axis) const;

  inline typename TTypes<int64_t>::UnalignedConstMatrix indices() const;
  template <typename T>
  typename TTypes<T>::UnalignedVec values() const;

 private:
  const GroupIterable* iterable_;
  int64_t begin_;
  int64_t end_;
};

// The groups of a sparse tensor whose indices are int64 and sorted by the axes grouped by.
class GroupIterable {
 public:
  GroupIterable(Tensor* indices, Tensor* values, int64_t dims,
                const std::vector<int64_t>& group_dims)
      : indices_(indices), values_(values), dims_(dims), group_dims_(group_dims) {}

  class IteratorStep {
   public:
    IteratorStep(const GroupIterable* iterable, int64_t begin)
        : iterable_(iterable), begin_(begin), end_(iterable->EndOf(begin)) {}

    bool operator==(const IteratorStep& other) const { return begin_ == other.begin_; }
    bool operator!=(const IteratorStep& other) const { return begin_ != other.begin_; }
    IteratorStep& operator++() {
      begin_ = end_;
      end_ = iterable_->EndOf(begin_);
      return *this;
    }
    Group operator*() const { return Group(iterable_, begin_, end_); }
    int64_t loc() const { return begin_; }

   private:
    const GroupIterable* iterable_;
    int64_t begin_;
    int64_t end_;
  };

  IteratorStep begin() const { return IteratorStep(this, 0); }
  IteratorStep end() const { return IteratorStep(this, Count()); }
  IteratorStep at(int64_t position) const { return IteratorStep(this, position); }

 private:
  friend class Group;

  int64_t Count() const { return indices_->GetTensorShape()->GetDimSize(0); }
  int64_t* Row(int64_t entry) const {
    return static_cast<int64_t*>(indices_->GetData()) + entry * dims_;
  }

  int64_t EndOf(int64_t begin) const {
    int64_t end = begin;
    while (end < Count() && Agree(begin, end)) ++end;
    return end;
  }

  bool Agree(int64_t entry, int64_t other) const {
    for (const int64_t axis : group_dims_) {
      if (Row(entry)[axis] != Row(other)[axis]) return false;
    }
    return true;
  }

  Tensor* const indices_;
  Tensor* const values_;
  const int64_t dims_;
  const std::vector<int64_t> group_dims_;
};

inline std::vector<int64_t> Group::group() const {
  std::vector<int64_t> shared;
  for (const int64_t axis : iterable_->group_dims_) shared.push_back(iterable_->Row(begin_)[axis]);
  return shared;
}

inline int64_t Group::group_at(size_t axis) const { return iterable_->Row(begin_)[axis]; }

inline typename TTypes<int64_t>::UnalignedConstMatrix Group::indices() const {
  return typename TTypes<int64_t>::UnalignedConstMatrix(iterable_->Row(begin_), end_ - begin_,
                                                        iterable_->dims_);
}

template <typename T>
typename TTypes<T>::UnalignedVec Group::values() const {
  T* const data = static_cast<T*>(iterable_->values_->GetData());
  return typename TTypes<T>::UnalignedVec(data + begin_, end_ - begin_);
}

}  // namespace aicpu

#endif

#endif  // MSOPS_AICPU_UTILS_SPARSE_GROUP_H_
