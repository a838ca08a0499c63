// dtype_sets.h: the sets of dtypes that infer functions check against.
//
// They are made when the module is loaded, so only sources that ask for them include this.
#ifndef MSOPS_EXTENSION_GRAPH_DTYPE_SETS_H_
#define MSOPS_EXTENSION_GRAPH_DTYPE_SETS_H_

#include <initializer_list>
#include <set>

#include "msops_extension/graph/names.h"

namespace mindspore {

inline std::set<TypePtr> TypesOf(std::initializer_list<TypeId> type_ids) {
  std::set<TypePtr> types;
  for (const TypeId type_id : type_ids) types.insert(TypeIdToType(type_id));
  return types;
}

}  // namespace mindspore

namespace mindspore::ops {

#define MSOPS_COMMON_DTYPES                                                                \
  kNumberTypeInt8, kNumberTypeInt16, kNumberTypeInt32, kNumberTypeInt64, kNumberTypeUInt8, \
      kNumberTypeUInt16, kNumberTypeUInt32, kNumberTypeUInt64, kNumberTypeFloat16,         \
      kNumberTypeFloat32, kNumberTypeFloat64, kNumberTypeBFloat16
inline const std::set<TypePtr> common_valid_types = TypesOf({MSOPS_COMMON_DTYPES});
inline const std::set<TypePtr> common_valid_types_with_bool =
    TypesOf({MSOPS_COMMON_DTYPES, kNumberTypeBool});
inline const std::set<TypePtr> common_valid_types_with_complex =
    TypesOf({MSOPS_COMMON_DTYPES, kNumberTypeComplex64, kNumberTypeComplex128});
inline const std::set<TypePtr> common_valid_types_with_complex_and_bool =
    TypesOf({MSOPS_COMMON_DTYPES, kNumberTypeComplex64, kNumberTypeComplex128, kNumberTypeBool});
#undef MSOPS_COMMON_DTYPES

}  // namespace mindspore::ops

#endif  // MSOPS_EXTENSION_GRAPH_DTYPE_SETS_H_
