#include "algorithms.h"

namespace ranksafe::nccl {

namespace {

/// Below this many bytes in all, every rank gets everything and reduces by itself: one round instead of two.
constexpr size_t kOneRoundBytes = 1 << 16;

Span span_of(const at::Tensor& host) {
  return {host.data_ptr(), host.nbytes()};
}

/// A matrix with one row per rank for what `like` is a row of.
at::Tensor rows_for(const at::Tensor& like, int ranks) {
  return at::empty({ranks, like.numel()}, like.options());
}

std::vector<Span> row_spans(const at::Tensor& rows) {
  std::vector<Span> spans;
  for (int64_t row = 0; row < rows.size(0); ++row) spans.push_back(span_of(rows[row]));
  return spans;
}

} // namespace

Span bytes_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.nbytes()};
}

at::Tensor host_view(const at::Tensor& tensor) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  return at::from_blob(real.data_ptr(), {real.numel()}, at::TensorOptions(at::kCPU).dtype(real.scalar_type()));
}

void broadcast(Mesh& mesh, Span data, int root, Deadline deadline) {
  if (mesh.rank() != root) return mesh.exchange({}, {{root, data.data, data.bytes}}, deadline);
  std::vector<Outgoing> outgoing;
  for (int peer = 0; peer < mesh.size(); ++peer)
    if (peer != root) outgoing.push_back({peer, data.data, data.bytes});
  mesh.exchange(outgoing, {}, deadline);
}

void all_gather(Mesh& mesh, const std::vector<Span>& outputs, Span input, Deadline deadline) {
  all_to_all(mesh, outputs, std::vector<Span>(static_cast<size_t>(mesh.size()), input), deadline);
}

void all_to_all(Mesh& mesh, const std::vector<Span>& outputs, const std::vector<Span>& inputs, Deadline deadline) {
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    const Span& input = inputs.at(static_cast<size_t>(peer));
    const Span& output = outputs.at(static_cast<size_t>(peer));
    outgoing.push_back({peer, input.data, input.bytes});
    incoming.push_back({peer, output.data, output.bytes});
  }
  mesh.exchange(outgoing, incoming, deadline);
}

void gather(Mesh& mesh, const std::vector<Span>& outputs, Span input, int root, Deadline deadline) {
  std::vector<Incoming> incoming;
  for (size_t peer = 0; peer < outputs.size(); ++peer)
    incoming.push_back({static_cast<int>(peer), outputs[peer].data, outputs[peer].bytes});
  mesh.exchange({{root, input.data, input.bytes}}, incoming, deadline);
}

void scatter(Mesh& mesh, Span output, const std::vector<Span>& inputs, int root, Deadline deadline) {
  std::vector<Outgoing> outgoing;
  for (size_t peer = 0; peer < inputs.size(); ++peer)
    outgoing.push_back({static_cast<int>(peer), inputs[peer].data, inputs[peer].bytes});
  mesh.exchange(outgoing, {{root, output.data, output.bytes}}, deadline);
}

void all_reduce(Mesh& mesh, at::Tensor data, const Reduction& reduction, Deadline deadline) {
  const int ranks = mesh.size();
  if (data.nbytes() * static_cast<size_t>(ranks) <= kOneRoundBytes) {
    const at::Tensor rows = rows_for(data, ranks);
    all_gather(mesh, row_spans(rows), span_of(data), deadline);
    data.copy_(reduction.apply(rows));
    return;
  }
  // Each rank reduces one part and hands it to the others: the bytes that a ring would move, and one order of summation.
  std::vector<at::Tensor> parts;
  std::vector<Span> spans;
  const int64_t length = (data.numel() + ranks - 1) / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t begin = std::min(length * rank, data.numel());
    const int64_t end = std::min(begin + length, data.numel());
    parts.push_back(data.slice(0, begin, end));
    spans.push_back(span_of(parts.back()));
  }
  const at::Tensor& mine = parts[static_cast<size_t>(mesh.rank())];
  reduce_scatter(mesh, mine, parts, reduction, deadline);
  all_gather(mesh, spans, span_of(mine), deadline);
}

void reduce(Mesh& mesh, at::Tensor data, const Reduction& reduction, int root, Deadline deadline) {
  if (mesh.rank() != root) return gather(mesh, {}, span_of(data), root, deadline);
  const at::Tensor rows = rows_for(data, mesh.size());
  gather(mesh, row_spans(rows), span_of(data), root, deadline);
  data.copy_(reduction.apply(rows));
}

void reduce_scatter(
    Mesh& mesh,
    at::Tensor output,
    const std::vector<at::Tensor>& inputs,
    const Reduction& reduction,
    Deadline deadline) {
  const at::Tensor rows = rows_for(output, mesh.size());
  std::vector<Span> spans;
  for (const at::Tensor& input : inputs) spans.push_back(span_of(input));
  all_to_all(mesh, row_spans(rows), spans, deadline);
  if (output.numel() > 0) output.copy_(reduction.apply(rows));
}

} // namespace ranksafe::nccl
