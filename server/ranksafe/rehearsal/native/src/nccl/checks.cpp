#include "checks.h"

#include "reduction.h"

#include <ATen/ATen.h>

namespace ranksafe::nccl {

void check_tensor(const at::Tensor& tensor) {
  if (!tensor.is_cuda() || tensor.is_sparse()) C10_THROW_ERROR(ValueError, "Tensors must be CUDA and dense");
  if (!tensor.is_contiguous(tensor.suggest_memory_format())) C10_THROW_ERROR(ValueError, "Tensors must be contiguous");
  check_type(tensor.scalar_type());
}

void check_tensor_for_peer(const at::Tensor& tensor) {
  if (!tensor.is_cuda() || tensor.is_sparse()) C10_THROW_ERROR(ValueError, "Tensors must be CUDA and dense");
  if (!tensor.is_contiguous(tensor.suggest_memory_format())) {
    if (!tensor.is_non_overlapping_and_dense())
      C10_THROW_ERROR(ValueError, "Tensors for P2P must be non-overlapping and dense");
    TORCH_WARN_ONCE(
        "Detected non-contiguous tensor in P2P operations. It is user responsibility to guarantee that source and "
        "destination tensors have the same contiguity format.");
  }
  check_type(tensor.scalar_type());
}

void check_tensor_list(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) C10_THROW_ERROR(ValueError, "Tensor list must be nonempty");
  const at::Tensor& first = tensors.front();
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cuda() || tensor.is_sparse()) C10_THROW_ERROR(ValueError, "Tensors must be CUDA and dense");
    if (tensor.scalar_type() != first.scalar_type())
      C10_THROW_ERROR(TypeError, "Tensors must have identical type");
    if (!tensor.is_non_overlapping_and_dense())
      C10_THROW_ERROR(ValueError, "Tensors must be non-overlapping and dense");
    TORCH_CHECK_WITH(
        ValueError, tensor.get_device() == first.get_device(), "Expected list of tensors on the same device");
    check_type(tensor.scalar_type());
  }
}

void check_single(size_t tensors) {
  TORCH_CHECK(
      tensors == 1,
      "Expecting one tensor only but got multiple. You are probably using multiple devices under one thread. The "
      "support for such usage has been deprecated. For details, please refer to "
      "https://pytorch.org/docs/stable/distributed.html#multi-gpu-collective-functions. ProcessGroupNCCL continues "
      "supporting multi-process and multi-thread modes.");
}

} // namespace ranksafe::nccl
