// The same memory seen twice: a tensor of a simulated device as a host tensor for a CPU kernel, and results the other
// way round. Nothing is copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace ranksafe {

// A host tensor over the memory of a strided device tensor; other tensors are returned as they are.
at::Tensor host_alias(const at::Tensor& tensor);

// The aliases of one operator call: makes them, and finds its way back from what the kernel returned.
class CallAliases {
 public:
  // Alias of a strided or sparse tensor of a device; other tensors are returned as they are. With `written`, what the
  // kernel does to the alias (other memory, other sizes) is done to the tensor by `apply_writes`.
  at::Tensor alias(const at::Tensor& tensor, bool written);

  void apply_writes();

  // The device tensor for a tensor that the kernel returned: the argument itself, a view of an argument, or a new one
  // on `device`.
  at::Tensor result(const at::Tensor& returned, c10::DeviceIndex device);

 private:
  struct Pair {
    at::Tensor device;
    at::Tensor host;
    bool written;
  };

  at::Tensor strided_alias(const at::Tensor& tensor, bool written);
  at::Tensor sparse_alias(const at::Tensor& tensor);
  at::Tensor compressed_alias(const at::Tensor& tensor);
  void apply_strided_write(const Pair& pair);
  void apply_sparse_write(const Pair& pair);
  void apply_compressed_write(const Pair& pair);
  at::Tensor strided_result(const at::Tensor& returned, c10::DeviceIndex device);
  at::Tensor nested_result(const at::Tensor& returned, c10::DeviceIndex device);
  at::Tensor sparse_result(const at::Tensor& returned, c10::DeviceIndex device);
  at::Tensor compressed_result(const at::Tensor& returned, c10::DeviceIndex device);

  c10::SmallVector<Pair, 6> pairs_;
};

} // namespace ranksafe
