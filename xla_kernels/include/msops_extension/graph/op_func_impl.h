// op_func_impl.h: mindspore::ops::OpFuncImpl, shapes and dtypes of a graph operator's results.
#ifndef MSOPS_EXTENSION_GRAPH_OP_FUNC_IMPL_H_
#define MSOPS_EXTENSION_GRAPH_OP_FUNC_IMPL_H_

#include <cstdint>
#include <set>
#include <vector>

#include "msops_extension/graph/infer_info.h"
#include "msops_extension/pyboost.h"

#ifndef OPS_API
#define OPS_API
#endif

namespace mindspore {
constexpr int32_t OP_CHECK_SUCCESS = 0;
constexpr int32_t OP_CHECK_RETRY = -1;
}  // namespace mindspore

namespace mindspore::ops {

using TypeIdList = std::vector<TypeId>;

// One object per operator; it runs whenever the operator is called or traced.
class OpFuncImpl {
 public:
  OpFuncImpl() = default;
  virtual ~OpFuncImpl() = default;

  // One shape per result.
  virtual ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList&) const {
    MS_LOG(EXCEPTION) << "Its infer class does not override InferShape(const PrimitivePtr &, const "
                         "InferInfoPtrList &).";
  }
  // One dtype per result.
  virtual TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList&) const {
    MS_LOG(EXCEPTION) << "Its infer class does not override InferType(const PrimitivePtr &, const "
                         "InferInfoPtrList &).";
  }
  // Throws for arguments that the operator does not take.
  virtual int32_t CheckValidation(const PrimitivePtr&, const InferInfoPtrList&) const {
    return OP_CHECK_SUCCESS;
  }
  // Positions of tensors whose values the results' shapes depend on.
  virtual std::set<int64_t> GetValueDependArgIndices() const { return {}; }
  // Whether the functions above are overridden; MindSpore has older forms of them.
  virtual bool GeneralInferRegistered() const { return false; }
};

}  // namespace mindspore::ops

#endif  // MSOPS_EXTENSION_GRAPH_OP_FUNC_IMPL_H_
