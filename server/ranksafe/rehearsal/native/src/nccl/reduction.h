// What NCCL can reduce, and how this stand-in does it: on the host, with the CPU's own kernels.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace ranksafe::nccl {

/// A reduction operator that NCCL has, for tensors of one type.
class Reduction {
 public:
  /// Throws as ProcessGroupNCCL (torch 2.15) does for an operator or type that NCCL lacks.
  Reduction(const c10d::ReduceOp& operation, at::ScalarType type);

  /// Reduces `parts` (one row per rank, in the order of the ranks) to one row of the same type.
  at::Tensor apply(const at::Tensor& parts) const;

  /// A number that is equal on two ranks that ask for the same reduction.
  int code() const { return operation_; }

 private:
  c10d::ReduceOp::RedOpType operation_;
  double factor_ = 1.0;
};

/// Throws ValueError or TypeError for a type that no NCCL collective moves.
void check_type(at::ScalarType type);

} // namespace ranksafe::nccl
