#include "reduction.h"

namespace ranksafe::nccl {

using c10d::ReduceOp;

namespace {

bool is_small_float(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 || at::isFloat8Type(type);
}

bool is_float8_that_nccl_lacks(at::ScalarType type) {
  return at::isFloat8Type(type) && type != at::kFloat8_e5m2 && type != at::kFloat8_e4m3fn;
}

double premultiplier(const ReduceOp& operation, at::ScalarType type) {
  TORCH_CHECK(
      type == at::kHalf || type == at::kFloat || type == at::kBFloat16 || type == at::kDouble,
      "PreMulSum Data type must be half, float, bfloat16 or double");
  const auto* supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(operation.supplement_.get());
  TORCH_CHECK(supplement != nullptr, "PREMUL_SUM needs a factor: use torch.distributed._make_nccl_premul_sum");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>() : supplement->double_factor;
}

} // namespace

Reduction::Reduction(const ReduceOp& operation, at::ScalarType type) : operation_(operation) {
  TORCH_CHECK(!is_float8_that_nccl_lacks(type), "Unsupported Float8 type for NCCL reduction");
  switch (operation_) {
    case ReduceOp::SUM:
      // ProcessGroupNCCL sends booleans as bytes and reduces them with the maximum, so that sums do not overflow.
      if (type == at::kBool) operation_ = ReduceOp::MAX;
      break;
    case ReduceOp::AVG:
      if (type == at::kBool) C10_THROW_ERROR(TypeError, "Cannot use ReduceOp.AVG with boolean inputs");
      break;
    case ReduceOp::PREMUL_SUM:
      factor_ = premultiplier(operation, type);
      break;
    case ReduceOp::BAND:
      C10_THROW_ERROR(ValueError, "Cannot use ReduceOp.BAND with NCCL");
    case ReduceOp::BOR:
      C10_THROW_ERROR(ValueError, "Cannot use ReduceOp.BOR with NCCL");
    case ReduceOp::BXOR:
      C10_THROW_ERROR(ValueError, "Cannot use ReduceOp.BXOR with NCCL");
    case ReduceOp::UNUSED:
      C10_THROW_ERROR(ValueError, "Unhandled ReduceOp");
    default:
      break;
  }
}

at::Tensor Reduction::apply(const at::Tensor& parts) const {
  const at::ScalarType type = parts.scalar_type();
  // NCCL rounds after every addition of small floats; the last rounding alone is done here.
  at::Tensor wide = is_small_float(type) ? parts.to(at::kFloat) : type == at::kBool ? parts.to(at::kByte) : parts;
  if (operation_ == ReduceOp::PREMUL_SUM) wide = wide.mul(factor_);
  at::Tensor reduced;
  switch (operation_) {
    case ReduceOp::PRODUCT:
      reduced = wide.prod(0, /*keepdim=*/false, wide.scalar_type());
      break;
    case ReduceOp::MIN:
      reduced = wide.amin(0);
      break;
    case ReduceOp::MAX:
      reduced = wide.amax(0);
      break;
    default:
      reduced = wide.sum(0, /*keepdim=*/false, wide.scalar_type());
  }
  if (operation_ == ReduceOp::AVG) {
    if (at::isIntegralType(type, /*includeBool=*/false)) reduced.div_(parts.size(0), "trunc");
    else reduced.div_(parts.size(0));
  }
  return reduced.to(type);
}

void check_type(at::ScalarType type) {
  switch (type) {
    case at::kChar:
    case at::kByte:
    case at::kBool:
    case at::kInt:
    case at::kLong:
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble:
    case at::kFloat8_e5m2:
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e4m3fnuz:
    case at::kFloat8_e5m2fnuz:
    case at::kComplexHalf:
    case at::kComplexFloat:
    case at::kComplexDouble:
      return;
    default:
      C10_THROW_ERROR(
          TypeError, c10::str("Input tensor data type is not supported for NCCL process group: ", type));
  }
}

} // namespace ranksafe::nccl
