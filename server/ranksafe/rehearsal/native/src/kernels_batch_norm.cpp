// The pieces of batch normalization that SyncBatchNorm puts together across ranks. They exist for CUDA only.
#include "kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/empty.h>

namespace ranksafe {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TensorPair = std::tuple<at::Tensor, at::Tensor>;

bool is_present(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

std::vector<int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

at::Tensor per_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

at::Tensor in_float(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

TensorPair batch_norm_stats(const at::Tensor& input, double epsilon) {
  const at::Tensor values = in_float(input);
  const auto dims = all_but_channels(input);
  at::Tensor variance = values.var(dims, /*unbiased=*/false, /*keepdim=*/false);
  return {values.mean(dims), (variance + epsilon).rsqrt()};
}

void update_running(const OptionalTensor& running, const at::Tensor& now, double momentum) {
  if (is_present(running)) {
    running->mul_(1 - momentum).add_(now.to(running->scalar_type()), momentum);
  }
}

TensorPair gather_stats_with_counts(
    const at::Tensor&,
    const at::Tensor& means,
    const at::Tensor& inverse_deviations,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_variance,
    double momentum,
    double epsilon,
    const at::Tensor& counts) {
  const at::Tensor weights = counts.to(means.scalar_type()).view({-1, 1});
  const at::Tensor total = weights.sum();
  at::Tensor mean = (means * weights).sum(0) / total;
  const at::Tensor variances = inverse_deviations.pow(-2) - epsilon;
  const at::Tensor variance = ((variances + (means - mean).pow(2)) * weights).sum(0) / total;
  update_running(running_mean, mean, momentum);
  update_running(running_variance, variance * total / (total - 1), momentum);
  return {mean, (variance + epsilon).rsqrt()};
}

TensorPair gather_stats(
    const at::Tensor& input,
    const at::Tensor& means,
    const at::Tensor& inverse_deviations,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_variance,
    double momentum,
    double epsilon,
    int64_t count) {
  const at::Tensor counts = at::empty({means.size(0)}, means.options()).fill_(count);
  return gather_stats_with_counts(
      input, means, inverse_deviations, running_mean, running_variance, momentum, epsilon, counts);
}

at::Tensor normalize(
    const at::Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const at::Tensor& mean,
    const at::Tensor& inverse_deviation,
    double) {
  at::Tensor values = (in_float(input) - per_channel(mean, input)) * per_channel(inverse_deviation, input);
  if (is_present(weight)) {
    values = values * per_channel(in_float(*weight), input);
  }
  if (is_present(bias)) {
    values = values + per_channel(in_float(*bias), input);
  }
  return values.to(input.scalar_type(), false, false, input.suggest_memory_format());
}

at::Tensor& normalize_out(
    const at::Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const at::Tensor& mean,
    const at::Tensor& inverse_deviation,
    double epsilon,
    at::Tensor& out) {
  const at::Tensor result = normalize(input, weight, bias, mean, inverse_deviation, epsilon);
  return out.resize_(result.sizes()).copy_(result);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward_reduce(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& mean,
    const at::Tensor& inverse_deviation,
    const OptionalTensor& weight,
    bool for_input,
    bool for_weight,
    bool for_bias) {
  const auto dims = all_but_channels(input);
  const at::Tensor flow = in_float(gradient);
  const at::Tensor sum = flow.sum(dims);
  const at::Tensor centered = in_float(input) - per_channel(mean, input);
  const at::Tensor weighted_sum = (flow * centered).sum(dims);
  const at::ScalarType type = is_present(weight) ? weight->scalar_type() : input.scalar_type();
  return {
      for_input ? sum : at::Tensor(),
      for_input ? weighted_sum : at::Tensor(),
      for_weight ? (weighted_sum * inverse_deviation).to(type) : at::Tensor(),
      for_bias ? sum.to(type) : at::Tensor()};
}

at::Tensor backward_elements(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& mean,
    const at::Tensor& inverse_deviation,
    const OptionalTensor& weight,
    const at::Tensor& sum,
    const at::Tensor& weighted_sum,
    const at::Tensor& counts) {
  const at::Tensor total = counts.sum().to(mean.scalar_type());
  const at::Tensor mean_flow = per_channel(sum / total, input);
  const at::Tensor slope = per_channel(weighted_sum / total * inverse_deviation.pow(2), input);
  at::Tensor factor = inverse_deviation;
  if (is_present(weight)) {
    factor = factor * in_float(*weight);
  }
  const at::Tensor centered = in_float(input) - per_channel(mean, input);
  const at::Tensor result = (in_float(gradient) - mean_flow - centered * slope) * per_channel(factor, input);
  return result.to(input.scalar_type(), false, false, input.suggest_memory_format());
}

} // namespace

void register_batch_norm_kernels(torch::Library& host) {
  host.impl("batch_norm_stats", TORCH_FN(batch_norm_stats));
  host.impl("batch_norm_gather_stats", TORCH_FN(gather_stats));
  host.impl("batch_norm_gather_stats_with_counts", TORCH_FN(gather_stats_with_counts));
  host.impl("batch_norm_elemt", TORCH_FN(normalize));
  host.impl("batch_norm_elemt.out", TORCH_FN(normalize_out));
  host.impl("batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  host.impl("batch_norm_backward_elemt", TORCH_FN(backward_elements));
}

} // namespace ranksafe
