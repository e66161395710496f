// Fused cells of LSTM and GRU: torch's recurrent layers take them whenever the input is on CUDA, and they have no CPU
// kernel.
#include "kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace ranksafe {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

at::Tensor with_bias(const at::Tensor& gates, const OptionalTensor& bias) {
  return is_given(bias) ? gates + *bias : gates;
}

at::Tensor gradient_or_zeros(const OptionalTensor& gradient, const at::Tensor& like) {
  return is_given(gradient) ? *gradient : at::zeros_like(like);
}

// Gates in torch's order: input, forget, cell, output. The workspace keeps them for the backward pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& cell,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const auto gates = (with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  const at::Tensor input = gates[0].sigmoid();
  const at::Tensor forget = gates[1].sigmoid();
  const at::Tensor candidate = gates[2].tanh();
  const at::Tensor output = gates[3].sigmoid();
  at::Tensor next_cell = forget * cell + input * candidate;
  at::Tensor hidden = output * next_cell.tanh();
  return {hidden, next_cell, at::cat({input, forget, candidate, output}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const OptionalTensor& hidden_gradient,
    const OptionalTensor& cell_gradient,
    const at::Tensor& cell,
    const at::Tensor& next_cell,
    const at::Tensor& workspace,
    bool has_bias) {
  if (!is_given(hidden_gradient) && !is_given(cell_gradient)) {
    return {};
  }
  const auto gates = workspace.chunk(4, 1);
  const at::Tensor& input = gates[0];
  const at::Tensor& forget = gates[1];
  const at::Tensor& candidate = gates[2];
  const at::Tensor& output = gates[3];
  const at::Tensor from_hidden = gradient_or_zeros(hidden_gradient, next_cell);
  const at::Tensor squashed = next_cell.tanh();
  const at::Tensor total = from_hidden * output * (1 - squashed * squashed) + gradient_or_zeros(cell_gradient, next_cell);
  at::Tensor gate_gradient = at::cat(
      {total * candidate * input * (1 - input),
       total * cell * forget * (1 - forget),
       total * input * (1 - candidate * candidate),
       from_hidden * squashed * output * (1 - output)},
      1);
  at::Tensor bias_gradient = has_bias ? gate_gradient.sum(0) : at::Tensor();
  return {gate_gradient, total * forget, bias_gradient};
}

// Gates in torch's order: reset, update, new. The workspace keeps reset, update, new, the old state and the hidden
// part of the new gate.
std::tuple<at::Tensor, at::Tensor> gru_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& state,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (from_input[0] + from_hidden[0]).sigmoid();
  const at::Tensor update = (from_input[1] + from_hidden[1]).sigmoid();
  const at::Tensor candidate = (from_input[2] + reset * from_hidden[2]).tanh();
  at::Tensor next_state = candidate + update * (state - candidate);
  return {next_state, at::cat({reset, update, candidate, state, from_hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(
    const at::Tensor& gradient,
    const at::Tensor& workspace,
    bool has_bias) {
  const auto saved = workspace.chunk(5, 1);
  const at::Tensor& reset = saved[0];
  const at::Tensor& update = saved[1];
  const at::Tensor& candidate = saved[2];
  const at::Tensor& state = saved[3];
  const at::Tensor& hidden_part = saved[4];
  const at::Tensor for_update = gradient * (state - candidate) * update * (1 - update);
  const at::Tensor for_candidate = gradient * (1 - update) * (1 - candidate * candidate);
  const at::Tensor for_reset = for_candidate * hidden_part * reset * (1 - reset);
  at::Tensor input_gradient = at::cat({for_reset, for_update, for_candidate}, 1);
  at::Tensor hidden_gradient = at::cat({for_reset, for_update, for_candidate * reset}, 1);
  at::Tensor input_bias = has_bias ? input_gradient.sum(0) : at::Tensor();
  at::Tensor hidden_bias = has_bias ? hidden_gradient.sum(0) : at::Tensor();
  return {input_gradient, hidden_gradient, gradient * update, input_bias, hidden_bias};
}

} // namespace

void register_recurrent_kernels(torch::Library& host) {
  host.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  host.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  host.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  host.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

} // namespace ranksafe
