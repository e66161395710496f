#include "dry_execution.h"

#include "forecast_mode.h"
#include "host_alias.h"
#include "library_workspaces.h"
#include "meta_aliases.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace ranksafe {
namespace {

using c10::IValue;

// Reading a whole tensor costs more than it tells from here on.
constexpr std::size_t kLargestAnswer = std::size_t{256} << 20;

bool is_one_of(std::string_view name, c10::ArrayRef<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// "add" of "aten::add.Tensor"; the whole name of another library's operator.
std::string_view base_name(const OperatorPlan& plan) {
  std::string_view name = plan.name;
  if (!has_prefix(name, "aten::")) {
    return name;
  }
  name.remove_prefix(6);
  return name.substr(0, name.find('.'));
}

enum class Interest : uint8_t {
  none, // computed on the host
  in_result, // dry where the result turns out to be large
  dry,
};

// Whose results may be many times as large as their arguments.
bool may_grow(const OperatorPlan& plan) {
  static constexpr std::array<std::string_view, 16> kNames{
      "mm", "bmm", "addmm", "baddbmm", "_addmm_activation", // thin matrices: an adapter's second half
      "convolution", "_convolution", // few channels in, many out
      "cat", "stack", "repeat_interleave", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d",
      "gather", "index_select", "embedding"};
  return is_one_of(base_name(plan), kNames);
}

// From this size on a small argument of an operator that may grow is worth a question.
constexpr std::size_t kWorthAQuestion = std::size_t{16} << 10;

// The number of elements that all tensors broadcast to; 0 where they do not.
class BroadcastSize {
 public:
  void add(c10::IntArrayRef sizes) {
    if (sizes.size() > sizes_.size()) {
      sizes_.insert(sizes_.begin(), sizes.size() - sizes_.size(), 1);
    }
    const std::size_t offset = sizes_.size() - sizes.size();
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      int64_t& mine = sizes_[offset + dim];
      matches_ = matches_ && (mine == 1 || sizes[dim] == 1 || mine == sizes[dim]);
      mine = std::max(mine, sizes[dim]);
    }
  }
  double count() const {
    double product = matches_ ? 1 : 0;
    for (const int64_t size : sizes_) {
      product *= static_cast<double>(size);
    }
    return product;
  }

 private:
  std::vector<int64_t> sizes_;
  bool matches_ = true;
};

Interest interest_in(const OperatorPlan& plan, const IValue* arguments) {
  bool large = false;
  bool plain = true;
  bool floating = false;
  bool worth_a_question = false;
  BroadcastSize broadcast;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument&) {
    plain = plain && tensor.layout() == at::kStrided && !tensor.is_nested();
    large = large || (tensor.is_cuda() && is_large(tensor));
    floating = floating || is_floating(tensor);
    worth_a_question = worth_a_question || (is_floating(tensor) && bytes_of(tensor) >= kWorthAQuestion);
    broadcast.add(tensor.sizes());
  });
  if (!plain) {
    return Interest::none;
  }
  if (large) {
    return Interest::dry;
  }
  const bool outer = floating && broadcast.count() * 2 >= static_cast<double>(kLargeBytes);
  return outer || (worth_a_question && may_grow(plan)) ? Interest::in_result : Interest::none;
}

// Operators in place whose results are their arguments, whatever happens to the values.
bool only_writes_values(const OperatorPlan& plan) {
  static constexpr std::array<std::string_view, 8> kNames{
      "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_", "log_normal_"};
  const std::string_view base = base_name(plan);
  const bool of_lists = has_prefix(base, "_foreach_") || has_prefix(base, "_fused_") || has_prefix(base, "_amp_");
  return is_one_of(base, kNames) || (of_lists && base.back() == '_');
}

// An index by a mask has as many results as the mask has ones; masks have values, so their positions can be told.
IValue positions_of_masks(const IValue& indices) {
  c10::List<std::optional<at::Tensor>> positions;
  for (const IValue& element : indices.toListRef()) {
    if (!element.isTensor() || !element.toTensor().defined()) {
      positions.push_back(std::nullopt);
      continue;
    }
    const at::Tensor& index = element.toTensor();
    if (index.scalar_type() != at::kBool && index.scalar_type() != at::kByte) {
      positions.push_back(index);
      continue;
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor found = at::nonzero(host_alias(index));
    for (int64_t dim = 0; dim < index.dim(); ++dim) {
      positions.push_back(found.select(1, dim).contiguous());
    }
  }
  return IValue(std::move(positions));
}

template <typename Element>
IValue aliases_of_list(const IValue& list, bool written, MetaAliases& aliases) {
  c10::List<Element> replaced;
  for (const IValue& element : list.toListRef()) {
    if (element.isTensor()) {
      replaced.push_back(aliases.alias(element.toTensor(), written));
    } else {
      replaced.push_back(Element{});
    }
  }
  return IValue(std::move(replaced));
}

void replace_arguments(const OperatorPlan& plan, IValue* arguments, MetaAliases& aliases) {
  if (has_prefix(base_name(plan), "index") || base_name(plan) == "_index_put_impl_") {
    for (const PlannedArgument& argument : plan.arguments) {
      if (argument.kind == ArgumentKind::optional_tensor_list) {
        arguments[argument.position] = positions_of_masks(arguments[argument.position]);
      }
    }
  }
  for (const PlannedArgument& argument : plan.arguments) {
    IValue& value = arguments[argument.position];
    if (value.isTensor()) {
      value = IValue(aliases.alias(value.toTensor(), argument.written));
    } else if (argument.kind == ArgumentKind::tensor_list && value.isList()) {
      value = aliases_of_list<at::Tensor>(value, argument.written, aliases);
    } else if (argument.kind == ArgumentKind::optional_tensor_list && value.isList()) {
      value = aliases_of_list<std::optional<at::Tensor>>(value, argument.written, aliases);
    } else if (argument.kind == ArgumentKind::device && value.isDevice() && value.toDevice().is_cuda()) {
      value = IValue(c10::Device(c10::DeviceType::Meta));
    } else if (argument.kind == ArgumentKind::generator) {
      value = IValue(); // a meta kernel draws nothing
    }
  }
}

bool is_strided(const IValue& value) {
  return !value.isTensor() || !value.toTensor().defined() || value.toTensor().layout() == at::kStrided;
}

bool has_large_result(const IValue* results, std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    if (results[at].isTensor() && results[at].toTensor().defined() && is_large(results[at].toTensor())) {
      return true;
    }
    if (results[at].isTensorList()) {
      for (const at::Tensor& tensor : results[at].toTensorVector()) {
        if (is_large(tensor)) {
          return true;
        }
      }
    }
  }
  return false;
}

// Runs the meta kernel in place of the host's. False, with an unknown stack, where that is not possible.
bool call_meta_kernel(
    const c10::OperatorHandle& op, const OperatorPlan& plan, torch::jit::Stack* stack, MetaAliases& aliases) {
  const c10::impl::ExcludeDispatchKeyGuard plain(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset);
  try {
    replace_arguments(plan, stack->data() + (stack->size() - plan.argument_count), aliases);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  } catch (const std::exception&) {
    return false;
  }
  return std::all_of(stack->end() - static_cast<std::ptrdiff_t>(plan.return_count), stack->end(), is_strided);
}

// The operator's answer for a tensor of zeros, which is how memory without values reads: `isfinite` is true.
void answer_for_zeros(
    const c10::OperatorHandle& op, const OperatorPlan& plan, const std::vector<IValue>& arguments, const at::Tensor& answer) {
  static constexpr std::array<std::string_view, 15> kQuestions{
      "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "isneginf", "isposinf", "logical_not",
      "logical_and", "logical_or", "signbit"};
  if (!is_one_of(base_name(plan), kQuestions) || bytes_of(answer) >= kLargestAnswer) {
    return;
  }
  torch::jit::Stack probe;
  for (const IValue& argument : arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined() || argument.toTensor().numel() == 0) {
      probe.push_back(argument);
      continue;
    }
    const at::Tensor& tensor = argument.toTensor();
    at::Tensor one = at::scalar_tensor(0, at::TensorOptions().dtype(tensor.scalar_type()));
    if (tensor.numel() == 1) {
      one.copy_(host_alias(tensor).reshape({}));
    }
    probe.push_back(IValue(one));
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &probe);
  if (probe.back().toTensor().item<bool>()) {
    host_alias(answer).fill_(true);
  }
}

// Small results of calls without values: a loss or a norm of 1 keeps a program going.
void give_values(
    const c10::OperatorHandle& op,
    const OperatorPlan& plan,
    const std::vector<IValue>& arguments,
    const MetaAliases& aliases) {
  const at::AutoDispatchBelowADInplaceOrView below;
  for (const at::Tensor& tensor : aliases.made()) {
    if (is_floating(tensor) && bytes_of(tensor) < kLargeBytes) {
      host_alias(tensor).fill_(1);
    } else if (tensor.scalar_type() == at::kBool) {
      answer_for_zeros(op, plan, arguments, tensor);
    }
  }
}

// Results on the host, which the meta kernel has left without values.
void zero_host_results(const OperatorPlan& plan, torch::jit::Stack* stack) {
  const std::size_t first = stack->size() - plan.return_count;
  for (std::size_t at = first + plan.device_return_count; at < stack->size(); ++at) {
    IValue& value = (*stack)[at];
    value = IValue(at::zeros(value.toTensor().sizes(), value.toTensor().dtype()));
  }
}

} // namespace

bool execute_dry(
    const c10::OperatorHandle& op,
    const OperatorPlan& plan,
    torch::jit::Stack* stack,
    c10::DeviceIndex device) {
  const std::size_t first = stack->size() - plan.argument_count;
  const Interest interest = interest_in(plan, stack->data() + first);
  const bool tells_shapes = plan.return_count > 0 && plan.device_return_count == 0; // and the shapes are true
  if (interest == Interest::none || tells_shapes) {
    return false;
  }
  const std::vector<IValue> arguments(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  if (interest == Interest::dry && only_writes_values(plan)) {
    stack->resize(first);
    for (std::size_t position = 0; position < plan.return_count; ++position) {
      stack->push_back(arguments[position]);
    }
    return true;
  }
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    return false;
  }
  const MatrixLibrary library = matrix_library(plan, arguments.data());
  MetaAliases aliases;
  const bool known = call_meta_kernel(op, plan, stack, aliases);
  const bool wanted = known &&
      (interest == Interest::dry || has_large_result(stack->data() + (stack->size() - plan.return_count), plan.return_count));
  if (!wanted) {
    stack->resize(first);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    return false;
  }
  aliases.apply_writes();
  wrap_device_results(plan, stack, device, aliases);
  zero_host_results(plan, stack);
  take_workspace(library, device);
  give_values(op, plan, arguments, aliases);
  return true;
}

bool is_copy_left_out(const at::Tensor& target, const at::Tensor& source) {
  return is_large(target) && is_floating(source);
}

} // namespace ranksafe
