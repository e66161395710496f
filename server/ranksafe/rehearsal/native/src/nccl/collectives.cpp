// The collectives of torch.distributed: what they demand, and how each is done.
#include "checks.h"
#include "process_group.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace ranksafe::nccl {

using c10d::OpType;

namespace {

using Everybody = std::vector<Announcement>;

std::vector<Span> spans_of(const Tensors& tensors) {
  std::vector<Span> spans;
  for (const at::Tensor& tensor : tensors) spans.push_back(bytes_of(tensor));
  return spans;
}

std::vector<at::Tensor> host_views(const Tensors& tensors) {
  std::vector<at::Tensor> views;
  for (const at::Tensor& tensor : tensors) views.push_back(host_view(tensor));
  return views;
}

/// `tensor` cut along its memory into one part per rank.
std::vector<Span> equal_parts(const at::Tensor& tensor, int ranks) {
  const Span whole = bytes_of(tensor);
  const size_t bytes = whole.bytes / static_cast<size_t>(ranks);
  std::vector<Span> parts;
  for (int rank = 0; rank < ranks; ++rank)
    parts.push_back({static_cast<char*>(whole.data) + bytes * static_cast<size_t>(rank), bytes});
  return parts;
}

/// `tensor` cut along its first dimension; no sizes mean equal ones.
std::vector<Span> split_parts(const at::Tensor& tensor, const std::vector<int64_t>& sizes, int ranks) {
  if (sizes.empty()) return equal_parts(tensor, ranks);
  const Span whole = bytes_of(tensor);
  const size_t row = tensor.size(0) == 0 ? 0 : whole.bytes / static_cast<size_t>(tensor.size(0));
  std::vector<Span> parts;
  size_t offset = 0;
  for (const int64_t size : sizes) {
    const size_t bytes = row * static_cast<size_t>(size);
    parts.push_back({static_cast<char*>(whole.data) + offset, bytes});
    offset += bytes;
  }
  return parts;
}

bool equal_sizes(const Tensors& tensors, const at::Tensor& like) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return tensor.sizes() == like.sizes();
  });
}

#if RANKSAFE_TORCH_AT_LEAST(2, 9)
using c10d::isComplexViewAsRealAllowed;
#else
bool isComplexViewAsRealAllowed(const c10d::ReduceOp& operation) {
  return operation == c10d::ReduceOp::SUM || operation == c10d::ReduceOp::AVG ||
      operation == c10d::ReduceOp::PREMUL_SUM || operation == c10d::ReduceOp::UNUSED;
}
#endif

void check_reducible(const char* name, const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  if (tensor.is_complex())
    TORCH_CHECK(
        isComplexViewAsRealAllowed(operation), name, " does not support", operation, "on complex tensors");
}

Reduction reduction_for(const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  return {operation, tensor.is_complex() ? c10::toRealValueType(tensor.scalar_type()) : tensor.scalar_type()};
}

[[noreturn]] void differ_in_size(Mesh& mesh, Announcement mine, int peer, int64_t given, int64_t expected) {
  Announcement theirs = mine;
  mine.elements = expected;
  theirs.elements = given;
  throw_mismatch(mesh.rank(), describe(mine), peer, describe(theirs));
}

/// Throws unless every rank is about to send as many bytes as this one expects from it.
void check_parts(
    Mesh& mesh,
    const Announcement& mine,
    const std::vector<Span>& outputs,
    const std::vector<Span>& inputs,
    Deadline deadline) {
  std::vector<uint64_t> sending;
  for (const Span& input : inputs) sending.push_back(input.bytes);
  std::vector<uint64_t> arriving(inputs.size());
  std::vector<Span> out;
  std::vector<Span> in;
  for (size_t peer = 0; peer < inputs.size(); ++peer) {
    out.push_back({&arriving[peer], sizeof(uint64_t)});
    in.push_back({&sending[peer], sizeof(uint64_t)});
  }
  all_to_all(mesh, out, in, deadline);
  const auto element = static_cast<int64_t>(c10::elementSize(static_cast<c10::ScalarType>(mine.scalar_type)));
  for (size_t peer = 0; peer < inputs.size(); ++peer)
    if (arriving[peer] != outputs[peer].bytes)
      differ_in_size(
          mesh, mine, static_cast<int>(peer), static_cast<int64_t>(arriving[peer]) / element,
          static_cast<int64_t>(outputs[peer].bytes) / element);
}

void check_root(const std::string& name, int64_t root, int size) {
  if (root < 0 || root >= size)
    C10_THROW_ERROR(ValueError, c10::str("ProcessGroupNCCL::", name, ": invalid root rank: ", root));
}

/// The list that only the root gives: checked there, and refused elsewhere.
Tensors root_list(
    const char* name,
    const char* direction,
    const TensorLists& lists,
    const at::Tensor& like,
    bool is_root,
    int size) {
  const auto refuse = [name](const std::string& text) {
    C10_THROW_ERROR(ValueError, c10::str("ProcessGroupNCCL::", name, ": ", text));
  };
  if (!is_root) {
    if (!lists.empty()) refuse(c10::str("requires empty ", direction, " on non-root"));
    return {};
  }
  if (lists.size() != 1)
    refuse(c10::str(
        "requires a single-element ", direction, " list containing a list with ", size, " tensors."));
  if (lists[0].size() != static_cast<size_t>(size))
    refuse(c10::str(
        "Incorrect ", direction, " list size ", lists[0].size(), ". ",
        direction[0] == 'i' ? "Input" : "Output", " list size should be ", size,
        ", same as size of the process group."));
  c10d::assertTypeAndSizesMatch(refuse, lists[0], like.options(), like.sizes());
  for (const at::Tensor& tensor : lists[0]) check_tensor(tensor);
  return lists[0];
}

} // namespace

WorkPointer SimulatedProcessGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  check_single(tensors.size());
  const at::Tensor tensor = tensors.front();
  check_tensor(tensor);
  Call call{OpType::BROADCAST, "nccl:broadcast", {tensor}, {tensor}, announce(OpType::BROADCAST, tensor)};
  call.announcement.root = static_cast<int32_t>(options.rootRank + options.rootTensor);
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [tensor, root = call.announcement.root](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::broadcast(mesh, bytes_of(tensor), root, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  check_single(tensors.size());
  const at::Tensor tensor = tensors.front();
  check_reducible("all_reduce", tensor, options.reduceOp);
  check_tensor(tensor);
  const Reduction reduction = reduction_for(tensor, options.reduceOp);
  Call call{OpType::ALLREDUCE, "nccl:all_reduce", {tensor}, {tensor}, announce(OpType::ALLREDUCE, tensor)};
  call.announcement.reduction = reduction.code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [tensor, reduction](Mesh& mesh, const Everybody&, Deadline deadline) {
    all_reduce(mesh, host_view(tensor), reduction, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::allreduce_sparse(Tensors& /*tensors*/, const c10d::AllreduceOptions& /*options*/) {
  C10_THROW_ERROR(Error, "NCCL does not support all_reduce with sparse tensors. Please use dense tensors instead.");
}

WorkPointer SimulatedProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  check_tensor_list(tensors);
  Call call{OpType::COALESCED, "nccl:allreduce_coalesced", tensors, tensors,
            announce(OpType::ALLREDUCE_COALESCED, tensors.front())};
  std::vector<Reduction> reductions;
  call.announcement.elements = 0;
  for (const at::Tensor& tensor : tensors) {
    check_reducible("all_reduce", tensor, options.reduceOp);
    reductions.push_back(reduction_for(tensor, options.reduceOp));
    call.announcement.elements += tensor.numel();
  }
  call.announcement.reduction = reductions.front().code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [tensors, reductions](Mesh& mesh, const Everybody&, Deadline deadline) {
    for (size_t index = 0; index < tensors.size(); ++index)
      all_reduce(mesh, host_view(tensors[index]), reductions[index], deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_single(tensors.size());
  const at::Tensor tensor = tensors.front();
  check_reducible("reduce", tensor, options.reduceOp);
  check_tensor(tensor);
  const Reduction reduction = reduction_for(tensor, options.reduceOp);
  Call call{OpType::REDUCE, "nccl:reduce", {tensor}, {tensor}, announce(OpType::REDUCE, tensor)};
  call.announcement.root = static_cast<int32_t>(options.rootRank + options.rootTensor);
  call.announcement.reduction = reduction.code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [tensor, reduction, root = call.announcement.root](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::reduce(mesh, host_view(tensor), reduction, root, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::allgather(
    TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_single(inputs.size());
  const at::Tensor input = inputs.front();
  check_tensor(input);
  check_single(outputs.size());
  const Tensors output = outputs.front();
  check_tensor_list(output);
  TORCH_CHECK_WITH(
      ValueError, output.size() == static_cast<size_t>(size_),
      "Tensor list input to all_gather must have one tensor per rank: expected ", size_, ", got ", output.size());
  Call call{OpType::ALLGATHER, "nccl:all_gather", {input}, output, announce(OpType::ALLGATHER, input)};
  // Lists of tensors of different sizes are gathered, too: as one broadcast from each rank.
  call.announcement.elements_may_differ = 1;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input, output, mine = call.announcement](Mesh& mesh, const Everybody& everybody, Deadline deadline) {
    for (size_t peer = 0; peer < output.size(); ++peer)
      if (everybody[peer].elements != output[peer].numel())
        differ_in_size(mesh, mine, static_cast<int>(peer), everybody[peer].elements, output[peer].numel());
    all_gather(mesh, spans_of(output), bytes_of(input), deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::allgather_coalesced(
    TensorLists& /*outputs*/, Tensors& /*inputs*/, const c10d::AllgatherOptions& /*options*/) {
  C10_THROW_ERROR(NotImplementedError, "ProcessGroupNCCL does not support allgather_coalesced");
}

WorkPointer SimulatedProcessGroup::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  check_tensor(input);
  check_tensor(output);
  if (input.dtype() != output.dtype())
    C10_THROW_ERROR(TypeError, "output tensor must have the same type as input tensor");
  if (input.numel() * size_ != output.numel())
    C10_THROW_ERROR(ValueError, "output tensor size must be equal to world_size times input tensor size");
  Call call{OpType::_ALLGATHER_BASE, "nccl:_all_gather_base", {input}, {output},
            announce(OpType::_ALLGATHER_BASE, input)};
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input = input, output = output](Mesh& mesh, const Everybody&, Deadline deadline) {
    all_gather(mesh, equal_parts(output, mesh.size()), bytes_of(input), deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_WITH(ValueError, inputs.size() == outputs.size() && !inputs.empty(),
                   "allgather_into_tensor_coalesced needs as many outputs as inputs");
  Call call{OpType::COALESCED, "nccl:all_gather_into_tensor_coalesced", inputs, outputs,
            announce(OpType::ALLGATHER_COALESCED, inputs.front())};
  call.announcement.elements = 0;
  for (size_t index = 0; index < inputs.size(); ++index) {
    check_tensor(inputs[index]);
    check_tensor(outputs[index]);
    if (inputs[index].dtype() != outputs[index].dtype())
      C10_THROW_ERROR(TypeError, "output tensor must have the same type as input tensor");
    if (inputs[index].numel() * size_ != outputs[index].numel())
      C10_THROW_ERROR(ValueError, "output tensor size must be equal to world_size times input tensor size");
    call.announcement.elements += inputs[index].numel();
  }
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [inputs, outputs](Mesh& mesh, const Everybody&, Deadline deadline) {
    for (size_t index = 0; index < inputs.size(); ++index)
      all_gather(mesh, equal_parts(outputs[index], mesh.size()), bytes_of(inputs[index]), deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  check_root("gather", options.rootRank, size_);
  check_single(inputs.size());
  const at::Tensor input = inputs.front();
  check_tensor(input);
  const auto root = static_cast<int>(options.rootRank);
  const Tensors output = root_list("gather", "output", outputs, input, rank_ == root, size_);
  Call call{OpType::GATHER, "nccl:gather", {input}, output, announce(OpType::GATHER, input)};
  call.announcement.root = root;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input, output, root](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::gather(mesh, spans_of(output), bytes_of(input), root, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::gather_into_tensor(
    at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) {
  check_root("gather_single", options.rootRank, size_);
  check_tensor(input);
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = rank_ == root;
  if (is_root) {
    check_tensor(output);
    if (input.numel() * size_ != output.numel())
      C10_THROW_ERROR(ValueError, "output tensor size must be equal to world_size times input tensor size");
  }
  Call call{OpType::GATHER, "nccl:gather_single", {input}, is_root ? Tensors{output} : Tensors{},
            announce(OpType::GATHER, input)};
  call.announcement.root = root;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input = input, output = output, root, is_root](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::gather(
        mesh, is_root ? equal_parts(output, mesh.size()) : std::vector<Span>{}, bytes_of(input), root, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::scatter(
    Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  check_root("scatter", options.rootRank, size_);
  check_single(outputs.size());
  const at::Tensor output = outputs.front();
  check_tensor(output);
  const auto root = static_cast<int>(options.rootRank);
  const Tensors input = root_list("scatter", "input", inputs, output, rank_ == root, size_);
  Call call{OpType::SCATTER, "nccl:scatter", input, {output}, announce(OpType::SCATTER, output)};
  call.announcement.root = root;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input, output, root](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::scatter(mesh, bytes_of(output), spans_of(input), root, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::reduce_scatter(
    Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  check_single(outputs.size());
  const at::Tensor output = outputs.front();
  check_tensor(output);
  check_single(inputs.size());
  const Tensors input = inputs.front();
  check_tensor_list(input);
  check_reducible("reduce_scatter", output, options.reduceOp);
  const Reduction reduction = reduction_for(output, options.reduceOp);
  Call call{OpType::REDUCE_SCATTER, "nccl:reduce_scatter", input, {output},
            announce(OpType::REDUCE_SCATTER, output)};
  call.announcement.elements_may_differ = equal_sizes(input, output) ? 0 : 1;
  call.announcement.reduction = reduction.code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input, output, reduction, mine = call.announcement](
                 Mesh& mesh, const Everybody&, Deadline deadline) {
    if (mine.elements_may_differ)
      check_parts(
          mesh, mine, std::vector<Span>(static_cast<size_t>(mesh.size()), bytes_of(output)), spans_of(input), deadline);
    nccl::reduce_scatter(mesh, host_view(output), host_views(input), reduction, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  if (output.dtype() != input.dtype())
    C10_THROW_ERROR(TypeError, "input tensor must be the same type as the output tensor.");
  if (output.numel() * size_ != input.numel())
    C10_THROW_ERROR(ValueError, "input tensor must be the same size as output size times world size");
  check_tensor(output);
  check_tensor(input);
  check_reducible("reduce_scatter_tensor", output, options.reduceOp);
  const Reduction reduction = reduction_for(output, options.reduceOp);
  Call call{OpType::_REDUCE_SCATTER_BASE, "nccl:_reduce_scatter_base", {input}, {output},
            announce(OpType::_REDUCE_SCATTER_BASE, output)};
  call.announcement.reduction = reduction.code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input = input, output = output, reduction](Mesh& mesh, const Everybody&, Deadline deadline) {
    nccl::reduce_scatter(mesh, host_view(output), host_view(input).chunk(mesh.size()), reduction, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_WITH(ValueError, inputs.size() == outputs.size() && !inputs.empty(),
                   "reduce_scatter_tensor_coalesced needs as many outputs as inputs");
  Call call{OpType::COALESCED, "nccl:reduce_scatter_tensor_coalesced", inputs, outputs,
            announce(RANKSAFE_REDUCE_SCATTER_TENSOR_COALESCED, outputs.front())};
  call.announcement.elements = 0;
  std::vector<Reduction> reductions;
  for (size_t index = 0; index < inputs.size(); ++index) {
    check_tensor(inputs[index]);
    check_tensor(outputs[index]);
    if (outputs[index].numel() * size_ != inputs[index].numel())
      C10_THROW_ERROR(ValueError, "input tensor must be the same size as output size times world size");
    reductions.push_back(reduction_for(outputs[index], options.reduceOp));
    call.announcement.elements += outputs[index].numel();
  }
  call.announcement.reduction = reductions.front().code();
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [inputs, outputs, reductions](Mesh& mesh, const Everybody&, Deadline deadline) {
    for (size_t index = 0; index < inputs.size(); ++index)
      nccl::reduce_scatter(
          mesh, host_view(outputs[index]), host_view(inputs[index]).chunk(mesh.size()), reductions[index], deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::alltoall_base(
    at::Tensor& output,
    at::Tensor& input,
    std::vector<int64_t>& output_splits,
    std::vector<int64_t>& input_splits,
    const c10d::AllToAllOptions& options) {
  check_tensor(output);
  check_tensor(input);
  c10d::checkSplitSizes(input_splits, input, size_);
  c10d::checkSplitSizes(output_splits, output, size_);
  Call call{OpType::ALLTOALL_BASE, "nccl:all_to_all", {input}, {output}, announce(OpType::ALLTOALL_BASE, input)};
  call.announcement.elements_may_differ = 1;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [input = input, output = output, input_splits, output_splits, mine = call.announcement](
                 Mesh& mesh, const Everybody&, Deadline deadline) {
    const auto inputs = split_parts(input, input_splits, mesh.size());
    const auto outputs = split_parts(output, output_splits, mesh.size());
    check_parts(mesh, mine, outputs, inputs, deadline);
    all_to_all(mesh, outputs, inputs, deadline);
  };
  return launch(std::move(call));
}

WorkPointer SimulatedProcessGroup::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_WITH(
      ValueError, outputs.size() == static_cast<size_t>(size_) && inputs.size() == static_cast<size_t>(size_),
      "all_to_all needs one tensor per rank: expected ", size_, ", got ", inputs.size(), " inputs and ",
      outputs.size(), " outputs");
  for (int peer = 0; peer < size_; ++peer) {
    const at::Tensor& output = outputs[static_cast<size_t>(peer)];
    const at::Tensor& input = inputs[static_cast<size_t>(peer)];
    check_tensor(output);
    check_tensor(input);
    TORCH_CHECK(
        output.device() == outputs.front().device() && input.device() == outputs.front().device(),
        "Tensors must be on the same device");
  }
  Call call{OpType::ALLTOALL, "nccl:all_to_all", inputs, outputs, announce(OpType::ALLTOALL, inputs.front())};
  call.announcement.elements_may_differ = 1;
  call.timeout = options.timeout;
  call.waits = !options.asyncOp;
  call.run = [inputs, outputs, mine = call.announcement](Mesh& mesh, const Everybody&, Deadline deadline) {
    check_parts(mesh, mine, spans_of(outputs), spans_of(inputs), deadline);
    all_to_all(mesh, spans_of(outputs), spans_of(inputs), deadline);
  };
  return launch(std::move(call));
}

} // namespace ranksafe::nccl
