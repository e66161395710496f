// Memory and views: making tensors on a device, copying between devices, looking at the same storage differently.
#include "allocators.h"
#include "device_state.h"
#include "dry_execution.h"
#include "forecast_mode.h"
#include "host_alias.h"
#include "kernels.h"
#include "untouched_memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

namespace ranksafe {
namespace {

constexpr c10::DispatchKeySet kCudaKeys(c10::DispatchKey::CUDA);

c10::DeviceIndex index_or_current(std::optional<c10::Device> device) {
  return device.has_value() ? index_of(*device) : current_device();
}

at::Tensor empty_on_device(
    c10::IntArrayRef size,
    std::optional<at::ScalarType> type,
    std::optional<at::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pinned,
    std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "Only strided tensors are made here");
  const CurrentDevice scope(index_or_current(device));
  return at::detail::empty_generic(size, device_allocator(), kCudaKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided_on_device(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<at::ScalarType> type,
    std::optional<at::Layout>,
    std::optional<c10::Device> device,
    std::optional<bool> pinned) {
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  const CurrentDevice scope(index_or_current(device));
  return at::detail::empty_strided_generic(
      size, stride, device_allocator(), kCudaKeys, c10::dtype_or_default(type));
}

// Also from and to the host, and from one device to another: the memory is the same.
at::Tensor& copy_between_devices(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  require_no_fork();
  if (C10_UNLIKELY(is_forecast() && is_copy_left_out(self, source))) {
    if (self.is_cpu()) {
      mark_valueless(self.storage().data());
    }
    return self;
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor target = host_alias(self);
  target.copy_(host_alias(source), non_blocking);
  return self;
}

at::Scalar read_scalar(const at::Tensor& self) {
  require_no_fork();
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::_local_scalar_dense(host_alias(self));
}

const at::Tensor& resize_on_device(
    const at::Tensor& self,
    c10::IntArrayRef size,
    std::optional<at::MemoryFormat> format) {
  const CurrentDevice scope(self.get_device());
  return at::native::resize_(self, size, format);
}

void require_same_device(const at::Tensor& self, const c10::Storage& storage) {
  TORCH_CHECK(
      storage.device() == self.device() || storage.nbytes() == 0,
      "Attempted to set the storage of a tensor on device \"",
      self.device(),
      "\" to a storage on different device \"",
      storage.device(),
      "\".  This is no longer allowed; the devices must match.");
}

at::Tensor& set_storage_and_shape(
    at::Tensor& self,
    c10::Storage storage,
    int64_t offset,
    c10::IntArrayRef size,
    c10::IntArrayRef stride) {
  require_same_device(self, storage);
  c10::TensorImpl* implementation = self.unsafeGetTensorImpl();
  implementation->set_storage_offset(offset);
  implementation->set_storage_keep_dtype(std::move(storage));
  if (stride.data() != nullptr && stride.size() == size.size()) {
    implementation->set_sizes_and_strides(size, stride, offset);
  } else {
    implementation->set_sizes_contiguous(size);
    implementation->set_storage_offset(offset);
  }
  const CurrentDevice scope(self.get_device());
  // Grows the storage to what the shape needs, as CUDA does.
  const auto needed =
      at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.dtype().itemsize(), offset);
  if (self.numel() > 0 && self.storage().nbytes() < needed) {
    at::native::resize_bytes_cpu(self.storage().unsafeGetStorageImpl(), needed);
  }
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, c10::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
  return set_storage_and_shape(self, std::move(storage), 0, {count}, {1});
}

at::Tensor& set_like_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() != source.unsafeGetTensorImpl()) {
    set_storage_and_shape(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return self;
}

at::Tensor& set_to_nothing(at::Tensor& self) {
  const CurrentDevice scope(self.get_device());
  c10::Storage storage(
      c10::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return set_storage_and_shape(self, std::move(storage), 0, {0}, {1});
}

// Nothing is ever pending on a stream, so no memory has to be kept from being reused.
void record_nothing(at::Tensor&, at::Stream) {}

} // namespace

void register_storage_kernels(torch::Library& cuda) {
  cuda.impl("empty.memory_format", TORCH_FN(empty_on_device));
  cuda.impl("empty_strided", TORCH_FN(empty_strided_on_device));
  cuda.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  cuda.impl("view", TORCH_FN(at::native::view));
  cuda.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  cuda.impl("unfold", TORCH_FN(at::native::unfold));
  cuda.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  cuda.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  cuda.impl("copy_", TORCH_FN(copy_between_devices));
  cuda.impl("_local_scalar_dense", TORCH_FN(read_scalar));
  cuda.impl("resize_", TORCH_FN(resize_on_device));
  cuda.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_and_shape));
  cuda.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  cuda.impl("set_.source_Tensor", TORCH_FN(set_like_tensor));
  cuda.impl("set_", TORCH_FN(set_to_nothing));
  cuda.impl("record_stream", TORCH_FN(record_nothing));
}

} // namespace ranksafe
