// The collectives, written over one primitive: everybody exchanges bytes with everybody.
#pragma once

#include "mesh.h"
#include "reduction.h"

namespace ranksafe::nccl {

/// Bytes somewhere in host memory, which is where simulated devices have theirs.
struct Span {
  void* data;
  size_t bytes;
};

/// The memory of a dense tensor on a simulated device, in the order in which it lies.
Span bytes_of(const at::Tensor& tensor);

/// The same memory as a flat host tensor; complex numbers as pairs. Does not keep the memory alive.
at::Tensor host_view(const at::Tensor& tensor);

void broadcast(Mesh& mesh, Span data, int root, Deadline deadline);
/// `outputs` has one span per rank; each as long as that rank's `input`.
void all_gather(Mesh& mesh, const std::vector<Span>& outputs, Span input, Deadline deadline);
/// One span per rank on both sides.
void all_to_all(Mesh& mesh, const std::vector<Span>& outputs, const std::vector<Span>& inputs, Deadline deadline);
void gather(Mesh& mesh, const std::vector<Span>& outputs, Span input, int root, Deadline deadline);
void scatter(Mesh& mesh, Span output, const std::vector<Span>& inputs, int root, Deadline deadline);

/// In place, on a host tensor.
void all_reduce(Mesh& mesh, at::Tensor data, const Reduction& reduction, Deadline deadline);
/// Other ranks' data stays as it is.
void reduce(Mesh& mesh, at::Tensor data, const Reduction& reduction, int root, Deadline deadline);
/// `inputs` has one host tensor per rank: the part that this rank contributes to that rank's `output`.
void reduce_scatter(
    Mesh& mesh,
    at::Tensor output,
    const std::vector<at::Tensor>& inputs,
    const Reduction& reduction,
    Deadline deadline);

} // namespace ranksafe::nccl
