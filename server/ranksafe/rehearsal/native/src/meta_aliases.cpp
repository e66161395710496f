#include "meta_aliases.h"

#include "allocators.h"
#include "device_state.h"

namespace ranksafe {
namespace {

c10::Storage storage_on(c10::DeviceType type, std::size_t bytes) {
  if (type == c10::DeviceType::Meta) {
    return c10::Storage(
        c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, c10::Device(type)), c10::GetAllocator(type), true);
  }
  return c10::Storage(
      c10::Storage::use_byte_size_t(), bytes, device_allocator()->allocate(bytes), device_allocator(), true);
}

at::Tensor tensor_over(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* implementation = tensor.unsafeGetTensorImpl();
  implementation->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    implementation->set_wrapped_number(true);
  }
  tensor._set_conj(like.is_conj());
  tensor._set_neg(like.is_neg());
  return tensor;
}

} // namespace

at::Tensor MetaAliases::alias(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || tensor.is_meta() || (tensor.is_cpu() && tensor.dim() == 0)) {
    return tensor;
  }
  for (const Pair& pair : pairs_) {
    if (pair.device.is_same(tensor)) {
      return pair.meta;
    }
  }
  c10::Storage& storage = meta_storages_[tensor.storage().unsafeGetStorageImpl()];
  if (!storage) {
    storage = storage_on(c10::DeviceType::Meta, tensor.storage().nbytes());
    device_storages_[storage.unsafeGetStorageImpl()] = tensor.storage();
  }
  const at::Tensor meta = tensor_over(storage, c10::DispatchKey::Meta, tensor);
  pairs_.push_back({tensor, meta, written});
  return meta;
}

at::Tensor MetaAliases::result(const at::Tensor& returned, c10::DeviceIndex device) {
  if (!returned.defined() || !returned.is_meta()) {
    return returned;
  }
  for (const Pair& pair : pairs_) {
    if (pair.meta.is_same(returned)) {
      return pair.device;
    }
  }
  const bool is_new = device_storages_.count(returned.storage().unsafeGetStorageImpl()) == 0;
  c10::Storage& storage = device_storages_[returned.storage().unsafeGetStorageImpl()];
  if (is_new) {
    const CurrentDevice scope(device);
    storage = storage_on(c10::DeviceType::CUDA, returned.storage().nbytes());
  }
  at::Tensor tensor = tensor_over(storage, c10::DispatchKey::CUDA, returned);
  returned_.push_back(returned);
  if (is_new) {
    made_.push_back(tensor);
  }
  return tensor;
}

void MetaAliases::apply_writes() {
  for (const Pair& pair : pairs_) {
    const bool same = pair.meta.sizes() == pair.device.sizes() && pair.meta.strides() == pair.device.strides();
    if (!pair.written || !pair.device.is_cuda() || same) {
      continue;
    }
    c10::StorageImpl* storage = pair.device.storage().unsafeGetStorageImpl();
    const std::size_t needed = pair.meta.storage().nbytes();
    if (needed > storage->nbytes()) {
      const CurrentDevice scope(pair.device.get_device());
      storage->set_data_ptr_noswap(device_allocator()->allocate(needed));
      storage->set_nbytes(needed);
    }
    pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(
        pair.meta.sizes(), pair.meta.strides(), pair.meta.storage_offset());
  }
}

} // namespace ranksafe
