// Tensors of a device as tensors of the meta device, which have shapes only, and results the other way round.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace ranksafe {

// Of one operator call. Tensors over one storage stay tensors over one storage.
class MetaAliases {
 public:
  // Numbers on the host and tensors of the meta device are returned as they are.
  at::Tensor alias(const at::Tensor& tensor, bool written);

  // Memory and sizes that the operator gave to its results.
  void apply_writes();

  // The device tensor for a returned one: an argument, a view of an argument, or a new one on `device`.
  at::Tensor result(const at::Tensor& returned, c10::DeviceIndex device);

  // The new ones.
  const std::vector<at::Tensor>& made() const {
    return made_;
  }

 private:
  struct Pair {
    at::Tensor device;
    at::Tensor meta;
    bool written;
  };

  std::vector<Pair> pairs_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> meta_storages_; // by device storage
  std::unordered_map<c10::StorageImpl*, c10::Storage> device_storages_; // by meta storage
  std::vector<at::Tensor> returned_; // keeps the meta storages' addresses
  std::vector<at::Tensor> made_;
};

} // namespace ranksafe
