// op_enum.h: what the numbers mean that MindSpore passes for choices among words.
//
// Source: MindSpore 2.7.2, op_def/op_enum.h.
#ifndef MSOPS_AICPU_OP_DEF_OP_ENUM_H_
#define MSOPS_AICPU_OP_DEF_OP_ENUM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace mindspore {
namespace ops {

enum Direction : int64_t { UNIDIRECTIONAL = 0 };
enum CellType : int64_t { CELL_TYPE_LSTM = 0 };
enum Group : int64_t { SYNC_BN_GROUP0 = 0 };
enum InterpolationMode : int64_t { BILINEAR = 0, NEAREST = 1, BICUBIC = 2 };
enum Indexing : int64_t { IJ = 0, XY = 1 };
enum RoundingMode : int64_t { ROUND = 0, TRUNC = 1, FLOOR = 2, CEIL = 3 };
enum NormMode : int64_t { BACKWARD = 0, FORWARD = 1, ORTHO = 2 };
enum GridSamplerPaddingMode : int64_t { ZEROS = 0, BORDER = 1, REFLECTION = 2 };
enum KVCacheAlignMode : int64_t { RIGHT = 0, LEFT = 1 };
enum ErrorMode : int64_t { CYCLE = 0, SPECIFIC = 1 };
enum FlipMode : int64_t { BITFLIP = 0, BITFLIP_DESIGNED = 1, MULTIPLY = 2, MULTIPLY_MAX = 3 };
enum LinalgQrMode : int64_t { REDUCED = 0, COMPLETE = 1, R = 2 };
enum Approximate : int64_t { NONE = 0, TANH = 1 };

}  // namespace ops
}  // namespace mindspore

#endif  // MSOPS_AICPU_OP_DEF_OP_ENUM_H_
