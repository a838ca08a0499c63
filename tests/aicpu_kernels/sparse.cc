// Sparse tensors in coordinate form.
#include <numeric>

#include "inc/ms_cpu_kernel.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"
#include "utils/sparse_tensor.h"

namespace {
const char* const kDenseToCsr = "DenseToCsr";
const char* const kSparseDenseMatMul = "SparseDenseMatMul";
const char* const kSparseRowSum = "SparseRowSum";
const char* const kSparseSoftmax = "SparseSoftmax";
const char* const kSparseToDense = "SparseToDense";
}  // namespace

namespace aicpu {

// Outputs: row pointers, columns, values; of the latter two as many as there are.
class DenseToCsrCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 3), "[%s] check failed.", kDenseToCsr);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(ctx, IsMatrix(dims), KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs a matrix.", kDenseToCsr);
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    auto* pointers = static_cast<int32_t*>(ctx.Output(0)->GetData());
    auto* columns = static_cast<int32_t*>(ctx.Output(1)->GetData());
    auto* values = static_cast<float*>(ctx.Output(2)->GetData());
    int32_t count = 0;
    for (int64_t i = 0; i < dims[0]; ++i) {
      pointers[i] = count;
      for (int32_t j = 0; j < dims[1]; ++j) {
        if (x[i * dims[1] + j] == 0) continue;
        columns[count] = j;
        values[count++] = x[i * dims[1] + j];
      }
    }
    pointers[dims[0]] = count;
    ctx.Output(1)->GetTensorShape()->SetDimSizes({count});
    ctx.Output(2)->GetTensorShape()->SetDimSizes({count});
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kDenseToCsr, DenseToCsrCpuKernel);

// Inputs: indices int32 [n, 2], values [n], dense [k, m]. Attribute shape: of the sparse matrix.
class SparseDenseMatMulCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 3, 1, {"shape"}), "[%s] check failed.",
                             kSparseDenseMatMul);
    const std::vector<int64_t> shape = ctx.GetAttr("shape")->GetListInt();
    SparseTensor sparse;
    CUST_KERNEL_HANDLE_ERROR(ctx, sparse.CreateSparseTensor(ctx.Input(0), ctx.Input(1), shape, {}),
                             "[%s] create sparse tensor failed.", kSparseDenseMatMul);
    CUST_KERNEL_HANDLE_ERROR(ctx, sparse.IndicesValid(ctx), "[%s] indices are not valid.",
                             kSparseDenseMatMul);
    auto indices = sparse.indices()->matrix<int32_t>();
    auto values = sparse.values()->vec<float>();
    auto dense = EigenTensor(ctx.Input(2), ctx.Input(2)->GetData()).matrix<float>();
    auto output = EigenTensor(ctx.Output(0), ctx.Output(0)->GetData()).matrix<float>();
    CUST_KERNEL_CHECK_FALSE(ctx, dense.dimension(0) == shape[1], KERNEL_STATUS_PARAM_INVALID,
                            "[%s] the shapes do not match.", kSparseDenseMatMul);
    output.setZero();
    for (int64_t i = 0; i < values.dimension(0); ++i) {
      output.chip<0>(indices(i, 0)) += dense.chip<0>(indices(i, 1)) * values(i);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kSparseDenseMatMul, SparseDenseMatMulCpuKernel);

// Inputs: indices int64 [n, 2] sorted by rows, values [n]. Attribute rows.
class SparseRowSumCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1), "[%s] check failed.", kSparseRowSum);
    const int64_t rows = ctx.Output(0)->NumElements();
    SparseTensor sparse;
    CUST_KERNEL_HANDLE_ERROR(
        ctx, sparse.CreateSparseTensor(ctx.Input(0), ctx.Input(1), {rows, INT64_MAX}, {0, 1}),
        "[%s] create sparse tensor failed.", kSparseRowSum);
    CUST_KERNEL_HANDLE_ERROR(ctx, sparse.IndicesValid(ctx), "[%s] indices are not valid.",
                             kSparseRowSum);
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    std::fill_n(y, rows, 0.0F);
    for (const auto& group : sparse.group({0})) {
      const auto values = group.values<float>();
      Eigen::Tensor<float, 0, Eigen::RowMajor> sum = values.sum();
      y[group.group()[0]] = sum();
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kSparseRowSum, SparseRowSumCpuKernel);

// Inputs: indices int64 [n, axes] sorted, values [n], shape int64 [axes]. The softmax of each row,
// taken over the entries that are there.
class SparseSoftmaxCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 3, 1), "[%s] check failed.", kSparseSoftmax);
    const auto* dims = static_cast<int64_t*>(ctx.Input(2)->GetData());
    const std::vector<int64_t> shape(dims, dims + ctx.Input(2)->NumElements());
    std::vector<int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    SparseTensor sparse;
    CUST_KERNEL_HANDLE_ERROR(
        ctx, sparse.CreateSparseTensor(ctx, ctx.Input(0), ctx.Input(1), shape, order),
        "[%s] create sparse tensor failed.", kSparseSoftmax);
    CUST_KERNEL_HANDLE_ERROR(ctx, sparse.IndicesValid(ctx), "[%s] indices are not valid.",
                             kSparseSoftmax);
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    order.pop_back();
    for (const auto& group : sparse.group(ctx, order)) {
      const auto values = group.values<float>();
      typename TTypes<float>::UnalignedVec results(y, values.dimension(0));
      const Eigen::Tensor<float, 0, Eigen::RowMajor> largest = values.maximum();
      results = (values - values.constant(largest())).exp();
      const Eigen::Tensor<float, 0, Eigen::RowMajor> total = results.sum();
      results = results / results.constant(total());
      y += values.dimension(0);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kSparseSoftmax, SparseSoftmaxCpuKernel);

class SparseToDenseCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1), "[%s] check failed.", kSparseToDense);
    SparseTensor sparse;
    CUST_KERNEL_HANDLE_ERROR(
        ctx,
        sparse.CreateSparseTensor(ctx.Input(0), ctx.Input(1),
                                  ctx.Output(0)->GetTensorShape()->GetDimSizes(), {}),
        "[%s] create sparse tensor failed.", kSparseToDense);
    CUST_KERNEL_HANDLE_ERROR(ctx, sparse.IndicesValid(ctx), "[%s] indices are not valid.",
                             kSparseToDense);
    CUST_KERNEL_CHECK_FALSE(ctx, sparse.ToDense<float>(ctx.Output(0)), KERNEL_STATUS_INNER_ERROR,
                            "[%s] to dense failed.", kSparseToDense);
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kSparseToDense, SparseToDenseCpuKernel);

}  // namespace aicpu
