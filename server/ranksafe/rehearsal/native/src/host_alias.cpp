#include "host_alias.h"

#include "allocators.h"
#include "device_state.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/SparseTensorUtils.h>
#include <c10/core/CPUAllocator.h>

namespace ranksafe {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;

void release_storage(void* context) {
  c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(context));
}

// Without a graph: only because some CPU kernels ask whether a gradient will be wanted.
void copy_gradient_flag(const at::Tensor& from, const at::Tensor& to) {
  if (C10_UNLIKELY(from.requires_grad())) {
    to.unsafeGetTensorImpl()->set_requires_grad(true);
  }
}

void copy_view_state(const at::Tensor& from, const at::Tensor& to) {
  c10::TensorImpl* target = to.unsafeGetTensorImpl();
  target->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  if (C10_UNLIKELY(from.unsafeGetTensorImpl()->is_wrapped_number())) {
    target->set_wrapped_number(true);
  }
  if (C10_UNLIKELY(from.is_conj())) {
    to._set_conj(true);
  }
  if (C10_UNLIKELY(from.is_neg())) {
    to._set_neg(true);
  }
}

// The keys of a tensor made of `like`'s memory; a zero tensor has none, and its key says so.
DispatchKeySet keys_for(DispatchKey key, const at::Tensor& like) {
  const DispatchKeySet keys(key);
  return C10_UNLIKELY(like._is_zerotensor()) ? keys.add(DispatchKey::ZeroTensor) : keys;
}

at::Tensor device_view(const c10::Storage& storage, const at::Tensor& like) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), keys_for(DispatchKey::CUDA, like), like.dtype());
  copy_view_state(like, view);
  return view;
}

// A nested tensor over another buffer: its sizes, strides and offsets are host tensors on every device.
at::Tensor nested_over(const at::Tensor& buffer, const at::Tensor& like) {
  auto* source = static_cast<at::native::NestedTensorImpl*>(like.unsafeGetTensorImpl());
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      buffer, source->get_nested_sizes(), source->get_nested_strides(), source->get_storage_offsets());
}

at::Tensor nested_buffer(const at::Tensor& nested) {
  return static_cast<at::native::NestedTensorImpl*>(nested.unsafeGetTensorImpl())->get_buffer();
}

// Host memory that a kernel allocated becomes memory of the device.
c10::Storage device_storage(const c10::Storage& host, DeviceIndex device) {
  return c10::Storage(
      c10::Storage::use_byte_size_t(), host.nbytes(), adopt_host_storage(host, device), device_allocator(), true);
}

} // namespace

at::Tensor host_alias(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || tensor.layout() != at::kStrided || !tensor.has_storage()) {
    return tensor;
  }
  if (C10_UNLIKELY(tensor.is_nested())) {
    return nested_over(host_alias(nested_buffer(tensor)), tensor);
  }
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  c10::raw::intrusive_ptr::incref(storage);
  c10::DataPtr data(const_cast<void*>(storage->data()), storage, &release_storage, Device(DeviceType::CPU));
  auto host = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(
          c10::Storage::use_byte_size_t(), storage->nbytes(), std::move(data), c10::GetCPUAllocator(), true),
      keys_for(DispatchKey::CPU, tensor),
      tensor.dtype());
  copy_view_state(tensor, host);
  copy_gradient_flag(tensor, host);
  return host;
}

at::Tensor CallAliases::alias(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || !tensor.is_cuda()) {
    return tensor;
  }
  if (C10_LIKELY(tensor.layout() == at::kStrided)) {
    if (C10_UNLIKELY(tensor.is_nested())) {
      at::Tensor host = nested_over(strided_alias(nested_buffer(tensor), written), tensor);
      copy_gradient_flag(tensor, host);
      pairs_.push_back({tensor, host, false});
      return host;
    }
    return strided_alias(tensor, written);
  }
  at::Tensor host = tensor.is_sparse() ? sparse_alias(tensor) : compressed_alias(tensor);
  copy_gradient_flag(tensor, host);
  pairs_.push_back({tensor, host, written});
  return host;
}

at::Tensor CallAliases::strided_alias(const at::Tensor& tensor, bool written) {
  if (!tensor.has_storage()) {
    return tensor;
  }
  if (written && tensor.storage().nbytes() > 0) {
    // Makes a lazily cloned storage its own before anybody writes to it.
    tensor.storage().unsafeGetStorageImpl()->mutable_data();
  }
  at::Tensor host = host_alias(tensor);
  pairs_.push_back({tensor, host, written});
  return host;
}

at::Tensor CallAliases::sparse_alias(const at::Tensor& tensor) {
  auto* source = at::sparse::get_sparse_impl(tensor);
  auto host =
      at::detail::make_tensor<at::SparseTensorImpl>(DispatchKeySet(DispatchKey::SparseCPU), tensor.dtype());
  auto* target = at::sparse::get_sparse_impl(host);
  target->raw_resize_(source->sparse_dim(), source->dense_dim(), source->sizes());
  target->set_indices_and_values_unsafe(
      strided_alias(source->indices(), true), strided_alias(source->values(), true));
  target->set_coalesced(source->coalesced());
  return host;
}

at::Tensor CallAliases::compressed_alias(const at::Tensor& tensor) {
  auto* source = static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
  auto host = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      DispatchKeySet(DispatchKey::SparseCsrCPU), Device(DeviceType::CPU), source->layout(), tensor.dtype());
  static_cast<at::SparseCsrTensorImpl*>(host.unsafeGetTensorImpl())
      ->set_member_tensors(
          strided_alias(source->compressed_indices(), true),
          strided_alias(source->plain_indices(), true),
          strided_alias(source->values(), true),
          source->sizes());
  return host;
}

void CallAliases::apply_writes() {
  // Results of sparse writes add pairs, so no iterator may be kept.
  const std::size_t count = pairs_.size();
  for (std::size_t index = 0; index < count; ++index) {
    if (!pairs_[index].written) {
      continue;
    }
    const Pair pair = pairs_[index];
    if (pair.device.layout() == at::kStrided) {
      apply_strided_write(pair);
    } else if (pair.device.is_sparse()) {
      apply_sparse_write(pair);
    } else {
      apply_compressed_write(pair);
    }
  }
}

void CallAliases::apply_strided_write(const Pair& pair) {
  const at::Tensor& device = pair.device;
  const at::Tensor& host = pair.host;
  c10::StorageImpl* storage = device.storage().unsafeGetStorageImpl();
  const c10::Storage& host_storage = host.storage();
  if (host_storage.data() != storage->data() || host_storage.nbytes() != storage->nbytes()) {
    // The kernel resized its result: the device's storage gets the new memory, for all tensors that share it.
    storage->set_data_ptr_noswap(adopt_host_storage(host_storage, device.get_device()));
    storage->set_nbytes(host_storage.nbytes());
  }
  if (host.sizes() != device.sizes() || host.strides() != device.strides() ||
      host.storage_offset() != device.storage_offset()) {
    device.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  }
}

void CallAliases::apply_sparse_write(const Pair& pair) {
  auto* host = at::sparse::get_sparse_impl(pair.host);
  auto* device = at::sparse::get_sparse_impl(pair.device);
  const DeviceIndex index = pair.device.get_device();
  const at::Tensor indices = strided_result(host->indices(), index);
  const at::Tensor values = strided_result(host->values(), index);
  device->raw_resize_(host->sparse_dim(), host->dense_dim(), host->sizes());
  device->set_indices_and_values_unsafe(indices, values);
  device->set_coalesced(host->coalesced());
}

void CallAliases::apply_compressed_write(const Pair& pair) {
  auto* host = static_cast<at::SparseCsrTensorImpl*>(pair.host.unsafeGetTensorImpl());
  const DeviceIndex index = pair.device.get_device();
  static_cast<at::SparseCsrTensorImpl*>(pair.device.unsafeGetTensorImpl())
      ->set_member_tensors(
          strided_result(host->compressed_indices(), index),
          strided_result(host->plain_indices(), index),
          strided_result(host->values(), index),
          host->sizes());
}

at::Tensor CallAliases::result(const at::Tensor& returned, DeviceIndex device) {
  if (!returned.defined() || !returned.is_cpu()) {
    return returned;
  }
  if (C10_LIKELY(returned.layout() == at::kStrided)) {
    return C10_UNLIKELY(returned.is_nested()) ? nested_result(returned, device) : strided_result(returned, device);
  }
  for (const Pair& pair : pairs_) {
    if (pair.host.unsafeGetTensorImpl() == returned.unsafeGetTensorImpl()) {
      return pair.device;
    }
  }
  if (returned.is_sparse()) {
    return sparse_result(returned, device);
  }
  if (at::sparse_csr::is_sparse_compressed(returned)) {
    return compressed_result(returned, device);
  }
  return returned;
}

at::Tensor CallAliases::strided_result(const at::Tensor& returned, DeviceIndex device) {
  if (!returned.defined() || !returned.has_storage()) {
    return returned;
  }
  c10::StorageImpl* storage = returned.storage().unsafeGetStorageImpl();
  const Pair* shared = nullptr;
  for (const Pair& pair : pairs_) {
    if (pair.host.unsafeGetTensorImpl() == returned.unsafeGetTensorImpl()) {
      return pair.device;
    }
    if (pair.host.layout() == at::kStrided && !pair.host.is_nested() && pair.host.storage().unsafeGetStorageImpl() == storage) {
      shared = &pair;
    }
  }
  if (shared != nullptr) {
    return device_view(shared->device.storage(), returned);
  }
  at::Tensor fresh = device_view(device_storage(returned.storage(), device), returned);
  // Another result of the same call may be a view of this one.
  pairs_.push_back({fresh, returned, false});
  return fresh;
}

at::Tensor CallAliases::nested_result(const at::Tensor& returned, DeviceIndex device) {
  for (const Pair& pair : pairs_) {
    if (pair.host.unsafeGetTensorImpl() == returned.unsafeGetTensorImpl()) {
      return pair.device;
    }
  }
  return nested_over(strided_result(nested_buffer(returned), device), returned);
}

at::Tensor CallAliases::sparse_result(const at::Tensor& returned, DeviceIndex device) {
  auto* host = at::sparse::get_sparse_impl(returned);
  // The implementation refuses indices of another device than its own, which it takes from the current one.
  const CurrentDevice scope(device);
  auto fresh =
      at::detail::make_tensor<at::SparseTensorImpl>(DispatchKeySet(DispatchKey::SparseCUDA), returned.dtype());
  auto* target = at::sparse::get_sparse_impl(fresh);
  target->raw_resize_(host->sparse_dim(), host->dense_dim(), host->sizes());
  target->set_indices_and_values_unsafe(
      strided_result(host->indices(), device), strided_result(host->values(), device));
  target->set_coalesced(host->coalesced());
  return fresh;
}

at::Tensor CallAliases::compressed_result(const at::Tensor& returned, DeviceIndex device) {
  auto* host = static_cast<at::SparseCsrTensorImpl*>(returned.unsafeGetTensorImpl());
  auto fresh = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      DispatchKeySet(DispatchKey::SparseCsrCUDA),
      Device(DeviceType::CUDA, device),
      host->layout(),
      returned.dtype());
  static_cast<at::SparseCsrTensorImpl*>(fresh.unsafeGetTensorImpl())
      ->set_member_tensors(
          strided_result(host->compressed_indices(), device),
          strided_result(host->plain_indices(), device),
          strided_result(host->values(), device),
          host->sizes());
  return fresh;
}

} // namespace ranksafe
