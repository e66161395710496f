// Forecasts of memory: large floating tensors have addresses, shapes and types, but no values. Nothing reads or writes
// their memory, so a model of any size fits this machine; everything small or integral is computed as ever.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#ifdef _WIN32
#define RANKSAFE_SHARED __declspec(dllexport)
#else
#define RANKSAFE_SHARED __attribute__((visibility("default")))
#endif

namespace ranksafe {

// From this size on a floating tensor is large.
inline constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

RANKSAFE_SHARED bool is_forecast();
// Whether devices take more than they hold, so that all that the program needs is seen.
bool is_forecast_unbounded();
// For the rest of the process. Before the program makes its first tensor.
void begin_forecast(bool unbounded);

RANKSAFE_SHARED bool is_floating(const at::Tensor& tensor);
std::size_t bytes_of(const at::Tensor& tensor);
// Floating, strided and of at least `kLargeBytes`.
bool is_large(const at::Tensor& tensor);

} // namespace ranksafe
