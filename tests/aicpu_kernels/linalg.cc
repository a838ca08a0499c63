// Linear algebra with Eigen, over batches of matrices.
#include <Eigen/Dense>
#include <complex>

#include "inc/kernel_log.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"

namespace {
const char* const kBatchMatMul = "BatchMatMul";
const char* const kCholesky = "Cholesky";
const char* const kMatrixDeterminant = "MatrixDeterminant";
const char* const kMatrixSolve = "MatrixSolve";

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using MatrixMap = Eigen::Map<Matrix<T>>;
}  // namespace

namespace aicpu {

class BatchMatMulCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check failed.", kBatchMatMul);
    auto x = EigenTensor(ctx.Input(0), ctx.Input(0)->GetData()).tensor<float, 3>();
    auto y = EigenTensor(ctx.Input(1), ctx.Input(1)->GetData()).tensor<float, 3>();
    auto z = EigenTensor(ctx.Output(0), ctx.Output(0)->GetData()).tensor<float, 3>();
    CUST_KERNEL_CHECK_FALSE(
        ctx, x.dimension(0) == y.dimension(0) && x.dimension(2) == y.dimension(1),
        KERNEL_STATUS_PARAM_INVALID, "[%s] the shapes do not match.", kBatchMatMul);
    const Eigen::array<Eigen::IndexPair<int>, 1> axes = {Eigen::IndexPair<int>(1, 0)};
    return CpuKernelUtils::ParallelFor(ctx, x.dimension(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        z.chip(i, 0) = x.chip(i, 0).contract(y.chip(i, 0), axes);
      }
    });
  }
};
REGISTER_MS_CPU_KERNEL(kBatchMatMul, BatchMatMulCpuKernel);

// The lower factor; a matrix that is not positive definite is an error.
class CholeskyCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kCholesky);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const int64_t rank = static_cast<int64_t>(dims.size());
    CUST_KERNEL_CHECK_FALSE(ctx, rank >= 2 && dims[rank - 1] == dims[rank - 2],
                            KERNEL_STATUS_PARAM_INVALID, "[%s] needs square matrices.", kCholesky);
    const int64_t n = dims[rank - 1];
    auto* x = static_cast<double*>(ctx.Input(0)->GetData());
    auto* y = static_cast<double*>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); i += n * n) {
      Eigen::LLT<Matrix<double>> factors(MatrixMap<double>(x + i, n, n));
      CUST_KERNEL_CHECK_FALSE(ctx, factors.info() == Eigen::Success, KERNEL_STATUS_INNER_ERROR,
                              "[%s] the input is not positive definite.", kCholesky);
      MatrixMap<double>(y + i, n, n) = factors.matrixL();
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kCholesky, CholeskyCpuKernel);

class MatrixDeterminantCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalCheck(ctx, 1, 1), "[%s] check failed.", kMatrixDeterminant);
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT:
        return Run<float>(ctx);
      case DT_COMPLEX64:
        return Run<std::complex<float>>(ctx);
      default:
        KERNEL_LOG_ERROR("[%s] does not take [%s].", kMatrixDeterminant,
                         DTypeStr(ctx.Input(0)->GetDataType()).c_str());
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T>
  uint32_t Run(CpuKernelContext& ctx) {
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    KERNEL_CHECK_FALSE(IsSquareMatrix(dims), KERNEL_STATUS_PARAM_INVALID,
                       "[%s] needs a square matrix.", kMatrixDeterminant);
    MatrixMap<T> x(static_cast<T*>(ctx.Input(0)->GetData()), dims[0], dims[0]);
    static_cast<T*>(ctx.Output(0)->GetData())[0] = x.determinant();
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kMatrixDeterminant, MatrixDeterminantCpuKernel);

// Attribute adjoint: solves with the conjugate transpose.
class MatrixSolveCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check failed.", kMatrixSolve);
    AttrValue* adjoint = ctx.GetAttr("adjoint");
    const bool is_adjoint = adjoint != nullptr && adjoint->GetBool();
    const auto a_dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto b_dims = ctx.Input(1)->GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(
        ctx, IsSquareMatrix(a_dims) && IsMatrix(b_dims) && a_dims[0] == b_dims[0],
        KERNEL_STATUS_PARAM_INVALID, "[%s] the shapes do not match.", kMatrixSolve);
    MatrixMap<float> a(static_cast<float*>(ctx.Input(0)->GetData()), a_dims[0], a_dims[0]);
    MatrixMap<float> b(static_cast<float*>(ctx.Input(1)->GetData()), b_dims[0], b_dims[1]);
    MatrixMap<float> x(static_cast<float*>(ctx.Output(0)->GetData()), b_dims[0], b_dims[1]);
    const Matrix<float> matrix = is_adjoint ? Matrix<float>(a.adjoint()) : Matrix<float>(a);
    Eigen::PartialPivLU<Matrix<float>> lu(matrix);
    CUST_KERNEL_CHECK_FALSE(ctx, lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] the matrix is not invertible.",
                            kMatrixSolve);
    x = lu.solve(b);
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kMatrixSolve, MatrixSolveCpuKernel);

}  // namespace aicpu
