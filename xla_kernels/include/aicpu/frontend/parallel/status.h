// status.h: there for kernels that include it by mistake; they use nothing of it.
#ifndef MSOPS_AICPU_FRONTEND_PARALLEL_STATUS_H_
#define MSOPS_AICPU_FRONTEND_PARALLEL_STATUS_H_

namespace mindspore {
namespace parallel {

enum Status { SUCCESS = 0, FAILED, INVALID_ARGUMENT };

}  // namespace parallel
}  // namespace mindspore

#endif  // MSOPS_AICPU_FRONTEND_PARALLEL_STATUS_H_
