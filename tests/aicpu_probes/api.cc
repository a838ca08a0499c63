// Every name of the AICPU API that MindSpore's kernels use, in a program that checks what it can
// and prints what is wrong. It runs without msops, as a kernel's own unit test does.
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bfloat16.h"
#include "bcast.h"
#include "common/kernel_errcode.h"
#include "context/common/cpu_kernel_utils.h"
#include "context/common/status.h"
#include "context/inc/cpu_kernel_utils.h"
#include "context/inc/cpu_nodedef_builder.h"
#include "context/utils/status.h"
#include "cpu_attr_value.h"
#include "cpu_context.h"
#include "cpu_kernel.h"
#include "cpu_kernel_register.h"
#include "cpu_kernel_utils.h"
#include "cpu_nodedef_builder.h"
#include "cpu_tensor.h"
#include "cpu_tensor_shape.h"
#include "cpu_types.h"
#include "eigen_tensor.h"
#include "fft_helper.h"
#include "frontend/parallel/status.h"
#include "inc/cpu_attr_value.h"
#include "inc/cpu_context.h"
#include "inc/cpu_kernel.h"
#include "inc/cpu_kernel_register.h"
#include "inc/cpu_kernel_utils.h"
#include "inc/cpu_nodedef_builder.h"
#include "inc/cpu_tensor.h"
#include "inc/cpu_tensor_shape.h"
#include "inc/cpu_types.h"
#include "inc/cust_cpu_utils.h"
#include "inc/kernel_log.h"
#include "inc/ms_cpu_kernel.h"
#include "inc/status.h"
#include "include/securec.h"
#include "kernel_log.h"
#include "kernel_util.h"
#include "mindapi/base/types.h"
#include "op_def/op_enum.h"
#include "random/utils.h"
#include "securec.h"
#include "securec/include/securec.h"
#include "sparse_tensor.h"
#include "status.h"
#include "utils/atomic_op.h"
#include "utils/bcast.h"
#include "utils/broadcast_iterator.h"
#include "utils/distinct_uniform_int_distribution.h"
#include "utils/eigen_tensor.h"
#include "utils/equal_util.h"
#include "utils/fft_helper.h"
#include "utils/kernel_util.h"
#include "utils/ms_utils_secure.h"
#include "utils/philox_random.h"
#include "utils/range_sampler.h"
#include "utils/sparse_tensor.h"
#include "utils/tensor_iterator.h"

namespace {

int wrong = 0;

#define EXPECT(condition)                               \
  if (!(condition)) {                                   \
    std::printf("line %d: %s\n", __LINE__, #condition); \
    ++wrong;                                            \
  }

using namespace aicpu;  // NOLINT: status codes must not be ambiguous with it.

void CheckNumbers() {
  static_assert(DT_FLOAT == 0 && DT_FLOAT16 == 1 && DT_INT8 == 2 && DT_INT32 == 3);
  static_assert(DT_UINT8 == 4 && DT_INT16 == 6 && DT_UINT16 == 7 && DT_UINT32 == 8);
  static_assert(DT_INT64 == 9 && DT_UINT64 == 10 && DT_DOUBLE == 11 && DT_BOOL == 12);
  static_assert(DT_STRING == 13 && DT_DUAL_SUB_INT8 == 14 && DT_DUAL_SUB_UINT8 == 15);
  static_assert(DT_COMPLEX64 == 16 && DT_COMPLEX128 == 17 && DT_QINT8 == 18 && DT_QINT16 == 19);
  static_assert(DT_QINT32 == 20 && DT_QUINT8 == 21 && DT_QUINT16 == 22 && DT_RESOURCE == 23);
  static_assert(DT_STRING_REF == 24 && DT_DUAL == 25 && DT_BFLOAT16 == 27 && DT_UNDEFINED == 28);
  static_assert(DT_INT4 == 29 && DT_UINT1 == 30 && DT_INT2 == 31 && DT_UINT2 == 32);
  static_assert(DT_COMPLEX32 == 33 && DT_MAX == 34);
  static_assert(FORMAT_NCHW == 0 && FORMAT_NHWC == 1 && FORMAT_ND == 2 && FORMAT_NC1HWC0 == 3);
  static_assert(FORMAT_FRACTAL_Z == 4 && FORMAT_HWCN == 16 && FORMAT_C1HWNCoC0 == 25);
  static_assert(FORMAT_MD == 26 && FORMAT_NDHWC == 27 && FORMAT_FRACTAL_ZZ == 28);
  static_assert(FORMAT_FRACTAL_NZ == 29 && FORMAT_NCDHW == 30 && FORMAT_DHWCN == 31);
  static_assert(FORMAT_NDC1HWC0 == 32 && FORMAT_FRACTAL_Z_3D == 33);
  static_assert(HOST == 0 && DEVICE == 1);
  static_assert(KERNEL_STATUS_OK == 0 && KERNEL_STATUS_PARAM_INVALID == 1);
  static_assert(KERNEL_STATUS_INNER_ERROR == 2 && KERNEL_STATUS_TIMEOUT == 3);
  static_assert(KERNEL_STATUS_PROTOBUF_ERROR == 4 && KERNEL_STATUS_SHARDER_ERROR == 5);
  static_assert(KERNEL_STATUS_END_OF_SEQUENCE == 201 && sizeof(KernelStatus) == 4);
  static_assert(::KERNEL_STATUS_OK == ::aicpu::KERNEL_STATUS_OK);
  static_assert(kFirstInputIndex == 0 && kSecondInputIndex == 1 && kThirdInputIndex == 2);
  static_assert(kFourthInputIndex == 3 && kFirstOutputIndex == 0 && kSecondOutputIndex == 1);
  static_assert(kResvCpuNum == 2 && kThreadNum == 32 && INPUT_NUM0 == 0 && INPUT_NUM3 == 3);
  static_assert(kDynamicInput == 0xffffffff && kDynamicOutput == 0xfffffffe);
  static_assert(kFormatNCHWIndexN == 0 && kFormatNCHWIndexW == 3 && kFormatNHWCIndexC == 3);
  static_assert(mindspore::MEAN == 1 && mindspore::PadMode::VALID == 2);
  static_assert(mindspore::NormMode::ORTHO == 2);
  EXPECT(GetSizeByDataType(DT_COMPLEX128) == 16 && GetSizeByDataType(DT_BFLOAT16) == 2);
  EXPECT(GetSizeByDataType(DT_STRING) == -1 && GetSizeByDataType(DT_RESOURCE) == -1);
  EXPECT(GetSizeByDataType(DT_STRING_REF) == -1 && GetSizeByDataType(DT_DUAL) == 5);
  EXPECT(GetSizeByDataType(DT_UINT1) == 1 && GetSizeByDataType(DT_INT2) == 2);
  EXPECT(GetSizeByDataType(DT_UINT2) == 2 && GetSizeByDataType(DT_INT4) == 4);
}

void CheckTensors() {
  auto shape = CpuKernelUtils::CreateTensorShape();
  EXPECT(shape->NumElements() == 1 && shape->GetDims() == 0);
  shape->SetDimSizes({2, 3});
  EXPECT(shape->GetFormat() == FORMAT_NCHW);
  shape->SetFormat(FORMAT_NHWC);
  shape->SetUnknownRank(true);
  EXPECT(shape->GetFormat() == FORMAT_NHWC && shape->GetUnknownRank());
  TensorShape copy = *shape;
  copy.SetDimSizes({7});
  EXPECT(copy.GetFormat() == FORMAT_NHWC && shape->GetDimSizes() == (std::vector<int64_t>{2, 3}));
  copy = *shape;
  EXPECT(copy.GetDimSizes() == shape->GetDimSizes() && copy.GetUnknownRank());
  auto tensor = CpuKernelUtils::CreateTensor();
  EXPECT(tensor->SetTensorShape(shape.get()) && !tensor->SetTensorShape(nullptr));
  tensor->SetDataType(DT_DOUBLE);
  EXPECT(tensor->CalcDataSizeByShape() == 48 && tensor->GetDataSize() == 0);
  tensor->SetDataType(DT_STRING);
  EXPECT(tensor->CalcDataSizeByShape() == -1);
  double data[6];
  tensor->SetData(data);
  tensor->SetDataSize(sizeof data);
  EXPECT(tensor->GetData() == data && tensor->GetDataSize() == 48 && tensor->NumElements() == 6);
  CpuKernelUtils::SetTensorName("name", tensor);
  EXPECT(CpuKernelUtils::GetTensorName(tensor.get()) == "name");
  EXPECT(CpuKernelUtils::GetImpl(tensor.get()) != nullptr);
  shape->SetDimSizes({-1, 3});
  EXPECT(shape->NumElements() == -1);
  EXPECT(tensor->GetTensorShape()->GetDimSizes() == (std::vector<int64_t>{2, 3}));
  tensor->GetTensorShape()->SetDimSizes({4});
  EXPECT(tensor->NumElements() == 4);
  shape->SetDimSizes({3, 0});
  tensor->SetTensorShape(shape.get());
  EXPECT(!IsEmptyTensor(tensor.get()));
  tensor->SetData(nullptr);
  EXPECT(IsEmptyTensor(tensor.get()));
}

template <typename T>
bool Throws(T&& call) {
  try {
    call();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void CheckAttributes() {
  auto a = CpuKernelUtils::CreateAttrValue();
  EXPECT(Throws([&] { a->GetInt(); }));
  a->SetInt(3);
  EXPECT(a->GetInt() == 3 && a->GetFloat() == 3 && a->GetDataType() == DT_INT32);
  EXPECT(Throws([&] { a->GetBool(); }) && Throws([&] { a->GetListInt(); }));
  a->SetFloat(0.5F);
  EXPECT(a->GetFloat() == 0.5F);
  a->SetBool(true);
  EXPECT(a->GetBool());
  a->SetString("text");
  EXPECT(a->GetString() == "text");
  a->SetDataType(DT_BOOL);
  EXPECT(a->GetDataType() == DT_BOOL);
  a->SetListInt({1, 2});
  a->AddListInt(3);
  EXPECT(a->GetListInt() == (std::vector<int64_t>{1, 2, 3}) && a->ListIntSize() == 3);
  EXPECT(a->GetTensorShape()->GetDimSizes() == (std::vector<int64_t>{1, 2, 3}));
  EXPECT(a->GetListFloat() == (std::vector<float>{1, 2, 3}) && a->ListFloatSize() == 3);
  a->SetListFloat({0.5F});
  a->AddListFloat(1.5F);
  EXPECT(a->GetListFloat() == (std::vector<float>{0.5F, 1.5F}));
  a->SetListBool({true});
  a->AddListBool(false);
  EXPECT(a->GetListBool() == (std::vector<bool>{true, false}) && a->ListBoolSize() == 2);
  a->SetListString({"a"});
  a->AddListString("b");
  EXPECT(a->GetListString() == (std::vector<std::string>{"a", "b"}) && a->ListStringSize() == 2);
  a->SetListDataType({DT_INT8});
  a->AddListDataType(DT_BOOL);
  EXPECT(a->GetListDataType() == (std::vector<DataType>{DT_INT8, DT_BOOL}));
  EXPECT(a->ListDataTypeSize() == 2);
  a->SetListListInt({{1}, {2, 3}});
  EXPECT(a->GetListListInt()[1][1] == 3);
  EXPECT(a->GetListTensorShape()[1]->NumElements() == 6);
  a->SetListInt({});
  EXPECT(a->GetListFloat().empty() && a->GetListString().empty() && a->GetListListInt().empty());
  auto shape = CpuKernelUtils::CreateTensorShape();
  shape->SetDimSizes({7});
  EXPECT(a->SetTensorShape(shape.get()) && a->GetTensorShape()->NumElements() == 7);
  EXPECT(a->SetListTensorShape({shape.get()}) && !a->SetTensorShape(nullptr));
  a->AddListTensorShape()->SetDimSizes({2, 2});
  EXPECT(a->ListTensorShapeSize() == 2 && a->GetListTensorShape()[1]->NumElements() == 4);
  auto tensor = CpuKernelUtils::CreateTensor();
  tensor->SetTensorShape(shape.get());
  EXPECT(a->SetTensor(tensor.get()) && a->GetTensor()->NumElements() == 7);
  EXPECT(a->SetListTensor({tensor.get()}));
  a->AddListTensor()->SetDataType(DT_BOOL);
  EXPECT(a->ListTensorSize() == 2 && a->GetListTensor()[1]->GetDataType() == DT_BOOL);
}

void CheckHelpers() {
  EXPECT(ConcatString("a", 1, 'b') == "a1b" && FmtToStr(2) == "2");
  EXPECT(VectorToString(std::vector<int64_t>{1, 2}) == "1, 2");
  EXPECT(FormatToSerialString(FORMAT_NC1HWC0) == "NC1HWC0");
  EXPECT(FormatToSerialString(FORMAT_FRACTAL_Z_3D) == "FRACTAL_Z_3D");
  EXPECT(GetOpName("CustAdd") == "Add" && GetOpName("Add") == "Add");
  EXPECT(DTypeStr(DT_FLOAT) == "DT_FLOAT" && DType("DT_INT64") == DT_INT64);
  EXPECT(DType("float") == DT_UNDEFINED && DTypeStr(DT_UNDEFINED) == "DT_UNDEFINED");
  int32_t result = 0;
  EXPECT(MulWithoutOverflow(6, 7, result) && result == 42);
  EXPECT(!MulWithoutOverflow(1 << 30, 4, result) && !AddWithoutOverflow(INT32_MAX, 1, result));
  EXPECT(AddWithoutOverflow(1, 2, result) && result == 3);
  EXPECT(CeilMultiple(7, 4) == 8);
  EXPECT(IsScalar({}) && IsVector({1}) && IsMatrix({1, 2}) && IsSquareMatrix({2, 2}));
  EXPECT(!IsSquareMatrix({2, 3}) && IsVectorOrHigher({1}) && !IsVectorOrHigher({}));
  EXPECT(ShapeVectorIsSame({1, 2}, {1, 2}) && !ShapeVectorIsSame({1}, {1, 1}));
  EXPECT(IntToSize(3) == 3U && SizeToInt(3) == 3 && LongToSize(3) == 3U && SizeToLong(3) == 3);
  EXPECT(MakeShared<std::string>("x")->size() == 1);
  alignas(16) char bytes[32];
  EXPECT(AddrAlignedCheck(bytes) && !AddrAlignedCheck(bytes + 1) && AddrAlignedCheck(bytes + 2, 2));
  float atom = 1;
  AtomicAdd(&atom, 2.0F);
  AtomicMul(&atom, 2.0F);
  AtomicSub(&atom, 1.0F);
  AtomicMax(&atom, 4.0F);
  AtomicMin(&atom, 8.0F);
  AtomicDiv(&atom, 2.0F);
  EXPECT(atom == 2.5F);
  std::complex<double> sum(1, 2);
  AtomicAdd(&sum, std::complex<double>(3, 4));
  CpuKernelContext none(HOST);
  AtomicAdd(none, &sum, std::complex<double>(1, 1));
  AtomicAdd(none, &atom, 1.0F);
  EXPECT(sum == std::complex<double>(5, 7) && atom == 3.5F);
  EXPECT(random::GetSeed(1, 2) == random::GetSeed(1, 2));
  EXPECT(random::GetSeed(1, 2) != random::GetSeed(2, 1));
  EXPECT(random::GetSeed(0, 0) != random::GetSeed(0, 0) && random::New64() != random::New64());
}

void CheckRandomNumbers() {
  CpuKernelContext ctx(HOST);
  // The vectors published with the generator, for a counter and key of digits of pi.
  using Random = random::PhiloxRandom;
  Random pi({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  EXPECT(pi() == (Random::ResultTypeArr{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT(random::Uint32ToFloat(ctx, 0xff800000) == 0 && random::Uint32ToFloat(ctx, 1 << 22) == 0.5);
  EXPECT(random::Uint32ToFloat(ctx, ~0U) == 1 - 0x1p-23F);
  EXPECT(random::Uint64ToDouble(ctx, ~0U, ~0U) == 1 - 0x1p-52);
  EXPECT(random::Uint64ToDouble(ctx, 0, 1) == 0x1p-52);
  float sine = 0, cosine = 0;
  random::BoxMullerFloat(ctx, 1 << 22, 1 << 21, &sine, &cosine);
  EXPECT(std::abs(sine - std::sqrt(2 * std::log(2.0F))) < 1e-6F && std::abs(cosine) < 1e-6F);
  double low = 0, high = 0;
  random::BoxMullerDouble(ctx, 0, 0, 0, 0, &low, &high);
  EXPECT(low == 0 && std::abs(high - std::sqrt(-2 * std::log(1e-7))) < 1e-12);
  std::vector<uint64_t> out, shape{3}, mean{2, 1}, deviation;
  uint64_t count = 1;
  EXPECT(random::InferOutputShape(&out, &shape, &mean, &deviation, &count) == 1 && count == 6);
  EXPECT(out == (std::vector<uint64_t>{2, 3}) && deviation == (std::vector<uint64_t>{1, 1}));
  std::vector<uint64_t> other{2};
  EXPECT(random::InferOutputShape(&out, &shape, &mean, &other, &count) == 0);

  uint64_t counts = 0, states = 0;
  auto node = CpuKernelUtils::CreateNodeDef();
  NodeDefBuilder(node.get(), "draw", "Draw")
      .Input({"counts", DT_UINT64, {1}, &counts, FORMAT_ND})
      .Input({"states", DT_UINT64, {1}, &states, FORMAT_ND});
  CpuKernelContext call(HOST);
  call.Init(node.get());
  uint32_t status = KERNEL_STATUS_OK;
  const auto next = [&] {
    return random::GetCpuKernelRandomStates(call, 0, 1, 5, 6, "Draw", &status);
  };
  EXPECT(next() == random::GetSeed(5, 6) && counts == 1);
  const uint64_t second = states;
  EXPECT(next() == second && states == std::mt19937(static_cast<uint32_t>(second))());
  EXPECT(status == KERNEL_STATUS_OK);
  random::GetCpuKernelRandomStates(call, 0, 2, 5, 6, "Draw", &status);
  EXPECT(status == KERNEL_STATUS_INNER_ERROR);
}

// The forms of MindSpore 2.7, which take the context.
void CheckHelpersWithContext() {
  CpuKernelContext ctx(HOST);
  auto node = CpuKernelUtils::CreateNodeDef();
  NodeDefBuilder(node.get(), "add", "CustAdd");
  ctx.Init(node.get());
  EXPECT(GetOpName(ctx) == "Add" && FormatToSerialString(ctx, FORMAT_ND) == "ND");
  int64_t product = 0;
  EXPECT(MulWithoutOverflow(ctx, 6, 7, product) && product == 42);
  EXPECT(!MulWithoutOverflow(ctx, int64_t{1} << 62, 4, product));
  EXPECT(!MulWithoutOverflow(ctx, -1, 4, product));
  EXPECT(IntToSize(ctx, 3) == 3 && LongToSize(ctx, -3) == 0 && SizeToInt(ctx, 3) == 3);
  EXPECT(SizeToInt(ctx, size_t{1} << 40) == INT_MAX && LongToInt(ctx, 3) == 3);
  EXPECT(LongToInt(ctx, int64_t{1} << 40) == INT_MAX);
  EXPECT(IntegerCast<int8_t>(ctx, 100) == 100 && IntegerCast<int8_t>(ctx, 200) == 0);
  EXPECT(IntegerCast<uint32_t>(ctx, int64_t{-1}) == 0);
  EXPECT(IntegerCast<uint64_t>(ctx, int64_t{1} << 40) == uint64_t{1} << 40);
  EXPECT(FloatEqual(1.0F, 1.000001F) && !FloatEqual(1.0F, 1.001F));
  EXPECT(FloatEqual(1e6F, 1e6F + 1) && !FloatEqual(1.0, 1.000001) && FloatEqual(1.0, 1.0F));
  EXPECT(GetPrimaryFormat(0x0203) == 3 && GetSubFormat(0x0203) == 2 && HasSubFormat(0x0203));
  EXPECT(!HasSubFormat(FORMAT_NHWC) && kFormatNC1HWC0IndexC0 == 4 && kEigenAlignmentBytes == 16);
}

void CheckMemory() {
  uint8_t bytes[4] = {1, 2, 3, 4}, others[4] = {};
  EXPECT(mindspore::common::huge_memset(bytes, 4, 9, 2) == EOK && bytes[1] == 9 && bytes[2] == 3);
  EXPECT(mindspore::common::huge_memset(bytes, 4, 0, 5) != EOK);
  EXPECT(mindspore::common::huge_memcpy(others, 4, bytes, 3) == EOK && others[2] == 3);
  EXPECT(mindspore::common::huge_memcpy(others, 2, bytes, 3) != EOK && others[3] == 0);
  EXPECT(kAicpuKernelStateEndOfSequence == 201 && mindspore::ops::COMPLETE == 1);
}

#if __has_include(<unsupported/Eigen/CXX11/Tensor>)
void CheckSparse() {
  CpuKernelContext ctx(HOST);
  int64_t rows[] = {1, 2, 0, 1, 1, 0};
  double numbers[] = {3, 1, 2};
  const auto tensor = [](DataType dtype, std::vector<int64_t> sizes, void* data) {
    auto made = CpuKernelUtils::CreateTensor();
    auto shape = CpuKernelUtils::CreateTensorShape();
    shape->SetDimSizes(sizes);
    made->SetTensorShape(shape.get());
    made->SetDataType(dtype);
    made->SetData(data);
    return made;
  };
  auto indices = tensor(DT_INT64, {3, 2}, rows);
  auto values = tensor(DT_DOUBLE, {3}, numbers);
  SparseTensor sparse;
  EXPECT(sparse.CreateSparseTensor(ctx, indices.get(), values.get(), {2, 3}, {0, 1}) == 0);
  EXPECT(sparse.EigenTensorIndicesValid<int64_t>(ctx) != KERNEL_STATUS_OK);
  sparse.Reorder<double>(ctx, {0, 1});
  EXPECT(sparse.EigenTensorIndicesValid<int64_t>(ctx) == KERNEL_STATUS_OK);
  const int64_t sorted[] = {0, 1, 1, 0, 1, 2};
  EXPECT(std::equal(rows, rows + 6, sorted));
  EXPECT(numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 3);

  double dense[6] = {9, 9, 9, 9, 9, 9};
  auto out = tensor(DT_DOUBLE, {2, 3}, dense);
  const auto written = sparse.ToDense<int64_t, double>(ctx, out.get());
  EXPECT(written == KERNEL_STATUS_OK && dense[1] == 1 && dense[3] == 2 && dense[0] == 9);
  int64_t copied[6] = {};
  double copies[3] = {};
  auto to = tensor(DT_INT64, {3, 2}, copied), with = tensor(DT_DOUBLE, {3}, copies);
  const auto status = sparse.GetIndicesAndValues<int64_t, double>(ctx, to.get(), with.get());
  EXPECT(status == KERNEL_STATUS_OK && copied[5] == 2 && copies[2] == 3);

  std::vector<int64_t> sums;
  for (const auto& group : sparse.group(ctx, {0})) {
    EXPECT(group.group() == std::vector<int64_t>{group.group_at(0)});
    sums.push_back(group.values<double>()(0) + 10 * group.indices().dimension(0));
  }
  EXPECT(sums == (std::vector<int64_t>{11, 22}));
  EXPECT(SubtleMustCopy(numbers[2]) == 3);

  SparseTensor by_column;
  const std::vector<int64_t> shape{2, 3}, order{1, 0};
  EXPECT(by_column.CreateSparseTensor(ctx, indices.get(), values.get(), shape, order) == 0);
  EXPECT(by_column.Shape() == shape && by_column.Order() == order);
  const auto reordered = by_column.Reorder<int64_t, double>();
  const int64_t columns[] = {1, 0, 0, 1, 1, 2};
  EXPECT(reordered == KERNEL_STATUS_OK && std::equal(rows, rows + 6, columns));
  EXPECT(numbers[0] == 2 && numbers[1] == 1 && numbers[2] == 3);
}
#endif

// The vectors published with the generator, Random123's kat_vectors.
void CheckRandom() {
  using Block = random::PhiloxRandom::ResultTypeArr;
  EXPECT(random::PhiloxRandom(0, 0)() == (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  random::PhiloxRandom ones(~uint64_t{0}, ~uint64_t{0});
  ones.Skip(~uint64_t{0});
  EXPECT(ones() == (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  random::PhiloxRandom steps(7, 8), skips(7, 8);
  for (int i = 0; i < 5; ++i) steps();
  skips.Skip(5);
  EXPECT(steps() == skips());
  std::mt19937 engine(3);
  DistinctUniformIntDistribution<int64_t> distribution(-2, 2);
  int64_t bits = 0;
  for (int i = 0; i < 5; ++i) bits |= int64_t{1} << (distribution.exec(engine) + 2);
  EXPECT(bits == 31);
  distribution.Reset();
  EXPECT(distribution.exec(engine) <= 2);
  using Limits = std::numeric_limits<int64_t>;
  DistinctUniformIntDistribution<int64_t> whole(Limits::min(), Limits::max());
  EXPECT(!Throws([&] { EXPECT(whole.exec(engine) != whole.exec(engine)); }));
  DistinctUniformIntDistribution<int> one(5, 5);
  EXPECT(one.exec(engine) == 5 && Throws([&] { one.exec(engine); }));
  CpuKernelContext ctx(HOST);
  float total = 0;
  for (int64_t value = 0; value < 50; ++value) total += LogUniformSampler(50).Probability(value);
  EXPECT(total > 0.99999F && total < 1.00001F);
  std::vector<int64_t> batch(1000), distinct(5);
  std::vector<float> counts(1000), distinct_counts(5), extras(1);
  LogUniformSampler(50).SampleBatchGetExpectedCount(ctx, false, 7, &batch, &counts, {0}, &extras);
  const auto zeros = std::count(batch.begin(), batch.end(), 0);
  // Its mean is 176, its standard deviation 12.
  EXPECT(extras[0] > 176 && extras[0] < 177 && zeros > 128 && zeros < 224);
  UniformSampler(6).SampleBatchGetExpectedCountAvoid(ctx, true, 7, &distinct, &distinct_counts, {},
                                                     &extras, {3});
  std::sort(distinct.begin(), distinct.end());
  EXPECT(distinct == (std::vector<int64_t>{0, 1, 2, 4, 5}));
  // What cannot be drawn need not be avoided.
  UniformSampler(6).SampleBatchGetExpectedCountAvoid(ctx, true, 7, &distinct, &distinct_counts, {},
                                                     &extras, {-1, 6, 7, 3});
  std::sort(distinct.begin(), distinct.end());
  EXPECT(distinct == (std::vector<int64_t>{0, 1, 2, 4, 5}));
  UniformSampler(3).SampleBatchGetExpectedCount(ctx, true, 7, &distinct, &distinct_counts, {},
                                                &extras);
  EXPECT(distinct.empty());
}

void CheckFourier() {
#if __has_include(<unsupported/Eigen/FFT>)
  EXPECT(IsForwardOp("FFT") && IsForwardOp("CustRFFT2") && !IsForwardOp("IFFTN"));
  EXPECT(!IsForwardOp("CustIDCT") && GetCalculateElementNum({2, 3}, {1}, {5}, 6) == 10);
  EXPECT(GetNormalized(4, BACKWARD, true) == 1 && GetNormalized(4, BACKWARD, false) == 0.25);
  EXPECT(GetNormalized(4, FORWARD, true) == 0.25 && GetNormalized(4, FORWARD, false) == 1);
  EXPECT(GetNormalized(4, ORTHO, true) == 0.5 && GetNormalized(4, ORTHO, false) == 0.5);
  const std::complex<float> z(1.5F, 2.5F);
  float part = 0;
  Cast(&z, &part, false);
  EXPECT(part == 2.5F);
  const bool yes = true;
  std::complex<double> one;
  Cast(&yes, &one);
  EXPECT(one == 1.0);
  int32_t from[] = {1, 2, 3, 4};
  double to[] = {0, 0, 0, 0, 0, 0};
  ShapeCopy(from, to, {2, 2}, {2, 3});
  EXPECT(to[1] == 2 && to[2] == 0 && to[3] == 3 && to[4] == 4);
#endif
}

void CheckSecureFunctions() {
  char to[8] = "before";
  EXPECT(memcpy_s(to, sizeof to, "after", 6) == EOK && std::strcmp(to, "after") == 0);
  EXPECT(memcpy_s(to, 2, "after", 6) != EOK && to[0] == 0);
  EXPECT(memcpy_s(nullptr, 2, "after", 2) != EOK && memcpy_s(to, 0, "a", 1) != EOK);
  EXPECT(memcpy_s(to, sizeof to, nullptr, 1) != EOK && memcpy_s(to, 8, to + 1, 4) != EOK);
  EXPECT(memset_s(to, sizeof to, 1, 3) == EOK && to[2] == 1);
  EXPECT(memset_s(to, 2, 1, 3) != EOK);
  EXPECT(strcpy_s(to, sizeof to, "abc") == EOK && strcat_s(to, sizeof to, "de") == EOK);
  EXPECT(std::strcmp(to, "abcde") == 0 && strcat_s(to, 6, "f") != EOK);
  EXPECT(strncpy_s(to, 3, "abcdef", 2) == EOK && std::strcmp(to, "ab") == 0);
  EXPECT(strcpy_s(to, 3, "abc") != EOK && memmove_s(to, 8, to + 1, 3) == EOK);
  EXPECT(snprintf_s(to, sizeof to, 7, "%d", 1234567) == 7);
  EXPECT(snprintf_s(to, sizeof to, 3, "%d", 1234567) == -1 && std::strcmp(to, "123") == 0);
  EXPECT(sprintf_s(to, sizeof to, "%s", "far too long") == -1 && to[0] == 0);
}

void CheckBfloat16() {
  EXPECT(static_cast<float>(bfloat16(1.0F) / bfloat16(3.0F)) == 0.333984375F);
  EXPECT(static_cast<float>(bfloat16(1.00390625F)) == 1.0F);
  EXPECT(static_cast<float>(bfloat16(1.01171875F)) == 1.015625F);
  EXPECT(std::numeric_limits<bfloat16>::max() > bfloat16(3e38F) && isnan(bfloat16(NAN)));
  EXPECT(isinf(std::numeric_limits<bfloat16>::infinity()) && !isfinite(bfloat16(INFINITY)));
  bfloat16 sum(2);
  sum += bfloat16(3);
  EXPECT(sum == bfloat16(5) && -sum < sum && static_cast<int>(sum) == 5 && bool(sum));
  EXPECT(static_cast<float>(sqrt(bfloat16(4))) == 2 && abs(-sum) == sum && max(sum, -sum) == sum);
  EXPECT(pow(bfloat16(2), bfloat16(3)) == bfloat16(8) && sum / size_t{5} == bfloat16(1));
}

void CheckBroadcasting() {
  std::vector<int64_t> x_shape = {2, 1, 3}, y_shape = {4, 1}, shape;
  Bcast bcast(x_shape, y_shape);
  EXPECT(bcast.IsValid() && bcast.result_shape() == (std::vector<int64_t>{2, 4, 3}));
  EXPECT(bcast.x_reshape() == (std::vector<int64_t>{2, 1, 3}));
  EXPECT(bcast.y_reshape() == (std::vector<int64_t>{1, 4, 1}));
  EXPECT(bcast.GetBroadcastXIndex(13) == 4 && bcast.GetBroadcastYIndex(13) == 0);
  EXPECT(bcast.GetBroadcastXIndex(17) == 5 && bcast.GetBroadcastYIndex(17) == 1);
  EXPECT(!Bcast({2, 3}, {4, 3}).IsValid());
  CpuKernelContext ctx(HOST);
  EXPECT(Bcast(ctx, x_shape, y_shape).IsValid());
  EXPECT(GetBroadcastShape(x_shape, y_shape, shape) == KERNEL_STATUS_OK);
  EXPECT(shape == (std::vector<int64_t>{2, 4, 3}));
  std::vector<int64_t> none;
  EXPECT(GetBroadcastShape({2, 3}, {2}, none) == KERNEL_STATUS_PARAM_INVALID);
  bool thrown = false;
  try {
    BroadcastIterator(x_shape, y_shape, {2, 4});
  } catch (const std::invalid_argument&) {
    thrown = true;
  }
  EXPECT(thrown);
  static_assert(static_cast<int>(BcastShapeType::SAME_SHAPE) == 0);
  static_assert(static_cast<int>(BcastShapeType::X_ONE_ELEMENT) == 1);
  static_assert(static_cast<int>(BcastShapeType::Y_ONE_ELEMENT) == 2);
  static_assert(static_cast<int>(BcastShapeType::DIFF_SHAPE) == 3);
  TensorIterator late({2, 2}, {1, 0});
  ++late.begin();
  EXPECT(*late == (std::vector<int64_t>{1, 1}));
  ++late;
  EXPECT(!(late != late.end()));
  TensorIterator walk({2, 1, 2});
  std::vector<std::vector<int64_t>> walked;
  for (; walk != walk.end(); ++walk) walked.push_back(*walk);
  EXPECT(walked.size() == 4 && walked[1] == (std::vector<int64_t>{0, 0, 1}));
  EXPECT(walked[2] == (std::vector<int64_t>{1, 0, 0}));
  BroadcastIterator iterator(x_shape, y_shape, shape);
  iterator.SetPos(13);
  EXPECT(iterator.GetInputPosA() == 4 && iterator.GetInputPosB() == 0);
  for (int i = 0; i < 4; ++i) iterator.GenNextPos();
  EXPECT(iterator.GetInputPosA() == 5 && iterator.GetInputPosB() == 1);
}

template <typename T, typename U>
uint32_t Status(int code) {
  return static_cast<uint32_t>(code);
}

// The check macros, each with and without what it checks; those without semicolons, too.
uint32_t OldChecks(int which, const void* pointer) {
  int64_t product = 0;
  KERNEL_CHECK_NULLPTR(pointer, 100, "null %d", 1)
  KERNEL_CHECK_FALSE(which != 1, 101, "%s", "false");
  KERNEL_CHECK_FALSE_EXEC(which != 2, return 102, "exec");
  KERNEL_HANDLE_ERROR(which == 3 ? 103 : 0, "error");
  KERNEL_CHECK_ASSIGN_64S_MULTI(int64_t{1} << 32, int64_t{which == 4} << 31, product, 104);
  AICPU_CHECK_NULLPTR(pointer, 105, "null");
  AICPU_CHECK_FALSE(which != 6, 106, "false");
  AICPU_CHK_STATUS_RET(Status<int, int>(which == 7 ? 107 : 0))
  RETURN_IF_FAILURE(which == 8 ? 108 : 0);
  [&] {
    KERNEL_CHECK_NULLPTR_VOID(pointer, "void");
    KERNEL_CHECK_FALSE_VOID(which != 9, "void");
    AICPU_CHECK_NULLPTR_VOID(pointer, "void");
    ++product;
  }();
  KERNEL_LOG_DEBUG("debug");
  KERNEL_LOG_INFO("info");
  KERNEL_LOG_WARN("warn");
  KERNEL_LOG_EVENT("event %d", 1);
  AICPU_LOGD("debug");
  AICPU_LOGI("info");
  AICPU_LOGW("warn");
  return static_cast<uint32_t>(product);
}

uint32_t NewChecks(CpuKernelContext& ctx, int which, const void* pointer) {
  int64_t product = 0;
  CUST_KERNEL_CHECK_NULLPTR(ctx, pointer, 100, "null %d", 1)
  CUST_KERNEL_CHECK_FALSE(ctx, which != 1, 101, "%s", "false");
  CUST_KERNEL_CHECK_FALSE_EXEC(ctx, which != 2, return 102, "exec");
  CUST_KERNEL_HANDLE_ERROR(ctx, which == 3 ? 103 : 0, "error");
  CUST_KERNEL_CHECK_ASSIGN_64S_MULTI(ctx, int64_t{1} << 32, int64_t{which == 4} << 31, product,
                                     104);
  CUST_AICPU_CHECK_NULLPTR(ctx, pointer, 105, "null");
  CUST_AICPU_CHECK_FALSE(ctx, which != 6, 106, "false");
  CUST_AICPU_CHK_STATUS_RET(ctx, Status<int, int>(which == 7 ? 107 : 0))
  [&] {
    CUST_KERNEL_CHECK_NULLPTR_VOID(ctx, pointer, "void");
    CUST_KERNEL_CHECK_FALSE_VOID(ctx, which != 9, "void");
    CUST_AICPU_CHECK_NULLPTR_VOID(ctx, pointer, "void");
    ++product;
  }();
  CUST_KERNEL_LOG_DEBUG(ctx, "debug");
  CUST_KERNEL_LOG_INFO(ctx, "info");
  CUST_KERNEL_LOG_WARN(ctx, "warn");
  CUST_KERNEL_LOG_EVENT(ctx, "event");
  CUST_AICPU_LOGD(ctx, "debug");
  CUST_AICPU_LOGI(ctx, "info");
  CUST_AICPU_LOGW(ctx, "warn");
  CUST_AICPU_EVENT(ctx, "event");
  if (which == 10) CUST_AICPU_LOGE(ctx, "error");
  return static_cast<uint32_t>(product);
}

void CheckMacros() {
  CpuKernelContext ctx(DEVICE);
  const int here = 0;
  EXPECT(OldChecks(0, nullptr) == 100 && NewChecks(ctx, 0, nullptr) == 100);
  for (const int which : {1, 2, 3, 4, 6, 7}) {
    EXPECT(OldChecks(which, &here) == 100U + static_cast<uint32_t>(which));
    EXPECT(NewChecks(ctx, which, &here) == 100U + static_cast<uint32_t>(which));
  }
  EXPECT(OldChecks(8, &here) == 108);
  EXPECT(OldChecks(9, &here) == 0 && NewChecks(ctx, 9, &here) == 0);
  EXPECT(OldChecks(0, &here) == 1 && NewChecks(ctx, 10, &here) == 1);
}

const char* const kSum = "Sum";
const char* const kOnlyCust = "OnlyCust";
const char* const kOnlyPlain = "OnlyPlain";

class SumCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1, {"scale"}), "check failed");
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    const auto* y = static_cast<float*>(ctx.Input(1)->GetData());
    auto* z = static_cast<float*>(ctx.Output(0)->GetData());
    const float scale = ctx.GetAttr("scale")->GetFloat();
    return CpuKernelUtils::ParallelFor(ctx, ctx.Input(0)->NumElements(), 1,
                                       [&](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i) {
                                           z[i] = scale * (x[i] + y[i]);
                                         }
                                       });
  }
};
REGISTER_MS_CPU_KERNEL(kSum, SumCpuKernel);
REGISTER_CUST_KERNEL(kOnlyCust, SumCpuKernel);
REGISTER_CPU_KERNEL(kOnlyPlain, SumCpuKernel);

void CheckKernels() {
  float x[] = {1, 2, 3}, y[] = {10, 20, 30}, z[3] = {};
  auto node = CpuKernelUtils::CreateNodeDef();
  NodeDefBuilder(node.get(), "sum", "Sum")
      .Input({"x", DT_FLOAT, {3}, x})
      .Input({"y", DT_FLOAT, {3}, y, FORMAT_ND})
      .Output({"z", DT_FLOAT, {3}, z})
      .Attr("scale", 0.5F)
      .Attr("int", 3)
      .Attr("long", int64_t{4})
      .Attr("double", 1.5)
      .Attr("bool", true)
      .Attr("string", "text")
      .Attr("dtype", DT_BOOL)
      .Attr("ints", std::vector<int64_t>{1, 2})
      .Attr("shape", std::vector<int64_t>{1, 2}, "shape")
      .Attr("shapes", std::vector<std::vector<int64_t>>{{1, 2}}, "shape_list");
  CpuKernelContext ctx(DEVICE);
  EXPECT(ctx.Init(node.get()) == KERNEL_STATUS_OK && ctx.Init(nullptr) != KERNEL_STATUS_OK);
  EXPECT(ctx.GetOpType() == "Sum" && ctx.GetInputsSize() == 2 && ctx.GetOutputsSize() == 1);
  EXPECT(ctx.GetAttr("int")->GetInt() == 3 && ctx.GetAttr("long")->GetInt() == 4);
  EXPECT(ctx.GetAttr("double")->GetFloat() == 1.5F && ctx.GetAttr("bool")->GetBool());
  EXPECT(ctx.GetAttr("string")->GetString() == "text");
  EXPECT(ctx.GetAttr("dtype")->GetDataType() == DT_BOOL && ctx.GetAttr("no") == nullptr);
  EXPECT(ctx.GetAttr("shape")->GetTensorShape()->NumElements() == 2);
  EXPECT(ctx.GetAttr("shapes")->GetListTensorShape()[0]->GetDims() == 2);
  EXPECT(CpuKernelUtils::GetTensorName(ctx.Input(0)) == "x" && ctx.Input(2) == nullptr);
  EXPECT(CpuKernelRegister::Instance().RunCpuKernel(ctx) == KERNEL_STATUS_OK);
  EXPECT(z[0] == 5.5F && z[2] == 16.5F);
  EXPECT(CpuKernelUtils::GetCPUNum(ctx) >= 4 && CustCpuKernelUtils::GetCPUNum(ctx) >= 4);
  EXPECT(NormalMathCheck(ctx) == KERNEL_STATUS_OK);
  EXPECT(NormalCheck(ctx, 3, 1) == KERNEL_STATUS_PARAM_INVALID);
  EXPECT(NormalCheck(ctx, 2, 2) == KERNEL_STATUS_PARAM_INVALID);
  EXPECT(NormalCheck(ctx, 1, 1, {"absent"}) == KERNEL_STATUS_PARAM_INVALID);
  EXPECT(NormalCheck(ctx, kDynamicInput, kDynamicOutput) == KERNEL_STATUS_OK);
  ctx.Input(1)->SetData(nullptr);
  EXPECT(NormalCheck(ctx, 2, 1) == KERNEL_STATUS_PARAM_INVALID);
  EXPECT(NormalCheck(ctx, 1, 1) == KERNEL_STATUS_OK);
  ctx.Input(1)->SetDataType(DT_INT32);
  EXPECT(NormalMathCheck(ctx) == KERNEL_STATUS_PARAM_INVALID);
  EXPECT(CheckTensorTypeSame({{"x", DT_FLOAT}}, DT_FLOAT, "Op") == KERNEL_STATUS_OK);
  EXPECT(CheckTensorTypeSame(ctx, {{"x", DT_BOOL}}, DT_FLOAT, "Op") != KERNEL_STATUS_OK);
  EXPECT(CheckComplexTensorTypeSame({{"x", DT_COMPLEX64}}, DT_COMPLEX64, "Op") == 0);
  EXPECT(CheckComplexTensorTypeSame(ctx, {{"x", DT_FLOAT}}, DT_FLOAT, "Op") != 0);
  EXPECT(CheckTensorShapeSame({{"x", ctx.Input(0)->GetTensorShape()}}, {3}, "Op") == 0);
  EXPECT(CheckTensorShapeSame(ctx, {{"x", ctx.Input(0)->GetTensorShape()}}, {4}, "Op") != 0);
  const auto& kernels = CpuKernelRegister::Instance();
  EXPECT(kernels.GetCpuKernel("OnlyCust") && kernels.GetCpuKernel("OnlyPlain"));
  EXPECT(!kernels.GetCpuKernel("Absent") && kernels.GetAllRegisteredOpTypes().size() == 4);
  EXPECT(!RegistCpuKernel("Sum", [] { return std::make_shared<SumCpuKernel>(); }));
}

}  // namespace

int main() {
  CheckNumbers();
  CheckTensors();
  CheckAttributes();
  CheckHelpers();
  CheckHelpersWithContext();
  CheckRandom();
  CheckRandomNumbers();
  CheckMemory();
#if __has_include(<unsupported/Eigen/CXX11/Tensor>)
  CheckSparse();
#endif
  CheckFourier();
  CheckSecureFunctions();
  CheckBfloat16();
  CheckBroadcasting();
  CheckMacros();
  CheckKernels();
  std::printf("%d wrong\n", wrong);
  return wrong != 0;
}
