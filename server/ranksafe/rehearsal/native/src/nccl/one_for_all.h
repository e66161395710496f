// A group of one process that stands for all: torch's own `fake` group, whose work says what it gave.
//
// DDP and communication hooks read the tensors from the future of the work (torch/csrc/distributed/c10d/comm.cpp,
// `parseHookResult`); that of torch's `FakeWork` holds nothing (torch 2.13, FakeProcessGroup.hpp).
#pragma once

#include "../torch_compatibility.h"

#include <torch/csrc/distributed/c10d/FakeProcessGroup.hpp>

namespace ranksafe::nccl {

/// Over from the beginning.
class DoneWork final : public c10d::Work {
 public:
  explicit DoneWork(std::vector<at::Tensor> outputs) : outputs_(std::move(outputs)) {}

  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/ = kNoTimeout) override { return true; }
  void synchronize() override {}
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(outputs_));
    return future;
  }

 private:
  std::vector<at::Tensor> outputs_;
};

class OneForAll final : public c10d::FakeProcessGroup {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;

  OneForAll(int rank, int size) : FakeProcessGroup(rank, size RANKSAFE_FAKE_GROUP_OPTIONS) {}

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    FakeProcessGroup::broadcast(tensors, options);
    return done(tensors);
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    FakeProcessGroup::allreduce(tensors, options);
    return done(tensors);
  }
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    FakeProcessGroup::allreduce_coalesced(tensors, options);
    return done(tensors);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    FakeProcessGroup::reduce(tensors, options);
    return done(tensors);
  }
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    FakeProcessGroup::allgather(outputs, inputs, options);
    return done(outputs.empty() ? Tensors() : outputs.front());
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    FakeProcessGroup::_allgather_base(output, input, options);
    return done({output});
  }
  WorkPointer allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    FakeProcessGroup::allgather_into_tensor_coalesced(outputs, inputs, options);
    return done(outputs);
  }
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override {
    FakeProcessGroup::scatter(outputs, inputs, options);
    return done(outputs);
  }
  WorkPointer reduce_scatter(
      Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override {
    FakeProcessGroup::reduce_scatter(outputs, inputs, options);
    return done(outputs);
  }
  WorkPointer _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    FakeProcessGroup::_reduce_scatter_base(output, input, options);
    return done({output});
  }
  WorkPointer reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override {
    FakeProcessGroup::reduce_scatter_tensor_coalesced(outputs, inputs, options);
    return done(outputs);
  }
  WorkPointer alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) override {
    FakeProcessGroup::alltoall_base(output, input, output_splits, input_splits, options);
    return done({output});
  }
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    FakeProcessGroup::alltoall(outputs, inputs, options);
    return done(outputs);
  }

 private:
  static WorkPointer done(Tensors outputs) { return c10::make_intrusive<DoneWork>(std::move(outputs)); }
};

} // namespace ranksafe::nccl
