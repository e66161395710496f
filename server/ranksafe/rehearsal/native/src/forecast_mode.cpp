#include "forecast_mode.h"

#include "host_memory.h"
#include "valueless_host.h"

#include <atomic>

namespace ranksafe {
namespace {

std::atomic<bool> forecasting{false};
std::atomic<bool> without_bound{false};

} // namespace

bool is_forecast() {
  return forecasting.load(std::memory_order_relaxed);
}

bool is_forecast_unbounded() {
  return without_bound.load(std::memory_order_relaxed);
}

void begin_forecast(bool unbounded) {
  without_bound = unbounded;
  if (!forecasting.exchange(true)) {
    install_host_allocator();
    register_valueless_host_kernels();
  }
}

bool is_floating(const at::Tensor& tensor) {
  return at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type());
}

std::size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.dtype().itemsize();
}

bool is_large(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_nested() && is_floating(tensor) &&
      bytes_of(tensor) >= kLargeBytes;
}

} // namespace ranksafe
