// Scaled dot product attention: which of CUDA's fused kernels torch takes, and what they compute.
//
// The fused kernels keep one number per row for the backward pass where the composed implementation keeps all scores,
// so the choice decides what a model's activations take.
#include "device_state.h"
#include "kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

namespace ranksafe {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// sdp::SDPBackend; cuDNN's kernel is left out: it keeps what flash attention keeps.
constexpr int64_t kMath = 0;
constexpr int64_t kFlash = 1;
constexpr int64_t kEfficient = 2;

constexpr int64_t kLargestFlashHead = 256;
constexpr int64_t kEfficientRows = 32; // its row sums are padded to a multiple of it

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

// The last argument of torch's own checks: nothing is told, in each release's way.
#define RANKSAFE_SILENTLY \
  {}

// use_flash_attention of aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, torch 2.8 to 2.13.
bool allows_flash(const sdp::sdp_params& call) {
  const at::Context& context = at::globalContext();
  return (context.userEnabledFlashSDP() || context.userEnabledCuDNNSDP()) && device_capability() >= 80 &&
      sdp::check_tensor_shapes(call, RANKSAFE_SILENTLY) && sdp::check_for_attn_mask(call, RANKSAFE_SILENTLY) &&
      is_half(call.query) && call.query.scalar_type() == call.key.scalar_type() &&
      call.query.scalar_type() == call.value.scalar_type() && call.query.size(-1) <= kLargestFlashHead &&
      call.query.size(-1) == call.key.size(-1) && call.query.size(-1) == call.value.size(-1) &&
      (!call.is_causal || call.query.size(-2) == call.key.size(-2)) &&
      sdp::check_batch_size_and_num_heads_dense<true>(call, RANKSAFE_SILENTLY) &&
      sdp::check_nonzero_sequence_lengths_dense(call, RANKSAFE_SILENTLY) &&
      sdp::check_last_dim_stride_equals_1_dense<true>(call, RANKSAFE_SILENTLY);
}

// minimum_gemm_alignment of the same file.
int64_t unit_of_efficient_heads(const at::Tensor& query) {
  const bool tensor_cores = device_capability() >= 80 || (device_capability() >= 70 && is_half(query));
  return tensor_cores ? (is_half(query) ? 8 : 4) : 1;
}

// use_mem_efficient_attention of the same file.
bool allows_efficient(const sdp::sdp_params& call) {
  const auto type = call.query.scalar_type();
  const bool known = type == at::kFloat || type == at::kHalf || (type == at::kBFloat16 && device_capability() >= 80);
  return at::globalContext().userEnabledMemEfficientSDP() && known && type == call.key.scalar_type() &&
      type == call.value.scalar_type() && sdp::check_tensor_shapes(call, RANKSAFE_SILENTLY) &&
      call.query.size(-1) == call.key.size(-1) && call.query.size(-1) % unit_of_efficient_heads(call.query) == 0 &&
      call.value.size(-1) % unit_of_efficient_heads(call.query) == 0 &&
      sdp::check_nonzero_sequence_lengths_dense(call, RANKSAFE_SILENTLY) &&
      sdp::check_last_dim_stride_equals_1_dense<false>(call, RANKSAFE_SILENTLY) &&
      sdp::check_batch_size_and_num_heads_dense<false>(call, RANKSAFE_SILENTLY);
}

int64_t choose_kernel(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const OptionalTensor& mask,
    double dropout,
    bool causal,
    std::optional<double>,
    bool grouped) {
  const sdp::sdp_params call{query, key, value, mask, dropout, causal, grouped};
  const bool dense = !query.is_nested() && !key.is_nested() && !value.is_nested();
  if (dense && allows_flash(call)) {
    return kFlash;
  }
  if (dense && allows_efficient(call)) {
    return kEfficient;
  }
  TORCH_CHECK(at::globalContext().userEnabledMathSDP(), "No available kernel. Aborting execution.");
  return kMath;
}

struct Rule {
  double dropout;
  bool causal;
  double scale;
};

Rule rule_of(const at::Tensor& query, double dropout, bool causal, std::optional<double> scale) {
  return {dropout, causal, scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))))};
}

// Several heads of the query may share one of the key and the value.
at::Tensor for_each_query_head(const at::Tensor& shared, const at::Tensor& query) {
  const at::Tensor exact = shared.to(at::kFloat);
  return shared.size(1) == query.size(1) ? exact : exact.repeat_interleave(query.size(1) / shared.size(1), 1);
}

at::Tensor over_shared_heads(const at::Tensor& gradient, const at::Tensor& shared) {
  if (gradient.size(1) == shared.size(1)) {
    return gradient;
  }
  return gradient.unflatten(1, {shared.size(1), gradient.size(1) / shared.size(1)}).sum(2);
}

at::Tensor scores_of(const at::Tensor& query, const at::Tensor& key, const OptionalTensor& bias, const Rule& rule) {
  at::Tensor scores = at::matmul(query.to(at::kFloat), for_each_query_head(key, query).transpose(-2, -1)) * rule.scale;
  if (bias.has_value() && bias->defined()) {
    scores = scores + bias->to(at::kFloat);
  }
  if (rule.causal) {
    const at::Tensor later = at::ones({query.size(2), key.size(2)}, at::kBool).triu(1);
    scores.masked_fill_(later, -std::numeric_limits<float>::infinity());
  }
  return scores;
}

// A row without anything to attend to is zero.
at::Tensor probabilities_of(const at::Tensor& scores, const at::Tensor& row_sums) {
  return (scores - row_sums.unsqueeze(-1)).exp().nan_to_num_(0.0);
}

// What is kept, divided by its share; the seed makes the backward pass drop the same.
at::Tensor kept_of(const at::Tensor& probabilities, double dropout, int64_t seed) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  return at::rand(probabilities.sizes(), generator, probabilities.options()).ge(dropout).to(at::kFloat) /
      (1.0 - dropout);
}

int64_t new_seed() {
  return at::randint(std::numeric_limits<int64_t>::max(), {}, at::kLong).item<int64_t>();
}

// Where heads come before the length in the shape, and after it in memory.
at::Tensor heads_in_rows(const at::Tensor& values, at::ScalarType type) {
  const auto sizes = values.sizes();
  return at::empty({sizes[0], sizes[2], sizes[1], sizes[3]}, values.options().dtype(type)).transpose(1, 2).copy_(values);
}

at::Tensor laid_out_like(const at::Tensor& values, const at::Tensor& like) {
  return at::empty_like(like).copy_(values);
}

struct Forward {
  at::Tensor output;
  at::Tensor row_sums;
  int64_t seed;
};

Forward forward(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const OptionalTensor& bias,
    const Rule& rule) {
  const at::Tensor scores = scores_of(query, key, bias, rule);
  const at::Tensor row_sums = at::logsumexp(scores, {-1});
  at::Tensor probabilities = probabilities_of(scores, row_sums);
  const int64_t seed = rule.dropout > 0 ? new_seed() : 0;
  if (rule.dropout > 0) {
    probabilities = probabilities * kept_of(probabilities, rule.dropout, seed);
  }
  return {at::matmul(probabilities, for_each_query_head(value, query)), row_sums, seed};
}

struct Gradients {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor scores;
};

Gradients backward(
    const at::Tensor& gradient,
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const OptionalTensor& bias,
    const at::Tensor& output,
    const at::Tensor& row_sums,
    int64_t seed,
    const Rule& rule) {
  const at::Tensor flow = gradient.to(at::kFloat);
  const at::Tensor probabilities = probabilities_of(scores_of(query, key, bias, rule), row_sums);
  at::Tensor to_probabilities = at::matmul(flow, for_each_query_head(value, query).transpose(-2, -1));
  at::Tensor weights = probabilities;
  if (rule.dropout > 0) {
    const at::Tensor kept = kept_of(probabilities, rule.dropout, seed);
    weights = weights * kept;
    to_probabilities = to_probabilities * kept;
  }
  const at::Tensor to_scores =
      probabilities * (to_probabilities - (flow * output.to(at::kFloat)).sum(-1, /*keepdim=*/true));
  return {
      at::matmul(to_scores, for_each_query_head(key, query)) * rule.scale,
      over_shared_heads(at::matmul(to_scores.transpose(-2, -1), query.to(at::kFloat)) * rule.scale, key),
      over_shared_heads(at::matmul(weights.transpose(-2, -1), flow), value),
      to_scores};
}

using FlashResult = std::
    tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

FlashResult flash(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    double dropout,
    bool causal,
    bool,
    std::optional<double> scale) {
  TORCH_CHECK(
      is_half(query), "FlashAttention only support fp16 and bf16 data type");
  const Forward result = forward(query, key, value, std::nullopt, rule_of(query, dropout, causal, scale));
  const at::Tensor state = at::full({2}, result.seed, at::kLong).to(at::kUInt64);
  return {
      laid_out_like(result.output, query),
      result.row_sums,
      at::Tensor(),
      at::Tensor(),
      query.size(2),
      key.size(2),
      state,
      at::zeros({}, at::kLong).to(at::kUInt64),
      at::empty({0}, query.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_backward(
    const at::Tensor& gradient,
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const at::Tensor& output,
    const at::Tensor& row_sums,
    const at::Tensor&,
    const at::Tensor&,
    c10::SymInt,
    c10::SymInt,
    double dropout,
    bool causal,
    const at::Tensor& state,
    const at::Tensor&,
    std::optional<double> scale) {
  const int64_t seed = dropout > 0 ? state.to(at::kLong)[0].item<int64_t>() : 0;
  const Gradients gradients = backward(
      gradient, query, key, value, std::nullopt, output, row_sums, seed, rule_of(query, dropout, causal, scale));
  return {
      laid_out_like(gradients.query, query),
      laid_out_like(gradients.key, key),
      laid_out_like(gradients.value, value)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const OptionalTensor& bias,
    bool keeps_row_sums,
    double dropout,
    bool causal,
    std::optional<double> scale) {
  const Forward result = forward(query, key, value, bias, rule_of(query, dropout, causal, scale));
  const int64_t rows = query.size(2);
  const int64_t padded = keeps_row_sums ? (rows + kEfficientRows - 1) / kEfficientRows * kEfficientRows : 0;
  at::Tensor row_sums = at::zeros({query.size(0), query.size(1), padded}, at::kFloat);
  if (keeps_row_sums) {
    row_sums.narrow(2, 0, rows).copy_(result.row_sums);
  }
  return {
      heads_in_rows(result.output, query.scalar_type()),
      row_sums,
      at::full({}, result.seed, at::kLong),
      at::zeros({}, at::kLong)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_backward(
    const at::Tensor& gradient,
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const at::Tensor& bias,
    const at::Tensor& output,
    const at::Tensor& row_sums,
    const at::Tensor& seed,
    const at::Tensor&,
    double dropout,
    std::array<bool, 4> wanted,
    bool causal,
    std::optional<double> scale) {
  if (!gradient.defined()) {
    return {};
  }
  const int64_t chosen = dropout > 0 ? seed.item<int64_t>() : 0;
  const Gradients gradients = backward(
      gradient, query, key, value, bias, output, row_sums.narrow(2, 0, query.size(2)), chosen,
      rule_of(query, dropout, causal, scale));
  const bool biased = bias.defined() && wanted[3];
  return {
      heads_in_rows(gradients.query, query.scalar_type()),
      heads_in_rows(gradients.key, key.scalar_type()),
      heads_in_rows(gradients.value, value.scalar_type()),
      biased ? at::sum_to(gradients.scores, bias.sizes()).to(bias.scalar_type()) : at::Tensor()};
}

} // namespace

void register_attention_kernels(torch::Library& host) {
  host.impl("_fused_sdp_choice", TORCH_FN(choose_kernel));
  host.impl("_scaled_dot_product_flash_attention", TORCH_FN(flash));
  host.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_backward));
  host.impl("_scaled_dot_product_efficient_attention", TORCH_FN(efficient));
  host.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_backward));
  // torch asks this table, not the dispatcher; no CUDA library fills it here.
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_kernel);
}

} // namespace ranksafe
