// The `nccl` backend of torch.distributed for simulated devices.
//
// It keeps ProcessGroupNCCL's rules for tensors, types and operators and its words for errors (torch 2.15), and moves the
// data through the loopback interface. What is not simulated: races between streams, NCCL's own numerics, its watchdog.
#pragma once

#include "../torch_compatibility.h"
#include "algorithms.h"
#include "communicator.h"
#include "handshake.h"
#include "options.h"
#include "work.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <map>
#include <set>

namespace ranksafe::nccl {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Milliseconds = std::chrono::milliseconds;

class SimulatedProcessGroup final : public c10d::Backend {
 public:
  SimulatedProcessGroup(
      c10::intrusive_ptr<c10d::Store> store,
      int rank,
      int size,
      c10::intrusive_ptr<Options> options);
  ~SimulatedProcessGroup() override;

  const std::string getBackendName() const override { return "nccl"; }
  c10::intrusive_ptr<Options> options() const { return options_; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override;
  WorkPointer allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPointer gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  // No `override`: torch before 2.15 has no such method.
  virtual WorkPointer gather_into_tensor(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options);
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int peer, int tag) override;
  WorkPointer recv(Tensors& tensors, int peer, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;

  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPointer endCoalescing() override;

  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) RANKSAFE_OVERRIDE_SINCE_2_9;
  c10::intrusive_ptr<c10d::Backend> merge(
      const c10::intrusive_ptr<c10d::Store>& store,
      const c10::intrusive_ptr<c10d::Backend::Options>& options,
      const int& rank,
      const int& size) RANKSAFE_OVERRIDE_SINCE_2_9;
  void eagerConnectSingleDevice(at::Device device) override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setTimeout(Milliseconds timeout) RANKSAFE_OVERRIDE_SINCE_2_9 { options_->timeout = timeout; }
  void addEphemeralTimeout(const Milliseconds& timeout) { extra_timeout_ = extra_timeout_.load() + timeout; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() RANKSAFE_OVERRIDE_SINCE_2_9 { return options_; }
  c10d::ErrorType getError() override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}
  void abort() override;
  void shutdown() override;
  /// Whether the ranks are connected, as far as this rank has got.
  bool is_initialized() const { return initialized_; }

  /// Ends every group of this process, so that no thread of ours outlives the interpreter. With `patience` 0, work that
  /// is under way is cut off, as it is when a process on a real device ends.
  static void close_all(Milliseconds patience);

 private:
  /// One collective, or the messages of one batch.
  struct Call {
    c10d::OpType type;
    const char* title;
    Tensors inputs;
    Tensors outputs;
    Announcement announcement;
    Milliseconds timeout{c10d::kUnsetTimeout};
    bool waits = false;
    std::function<void(Mesh&, const std::vector<Announcement>&, Deadline)> run;
  };
  struct Message {
    bool outgoing;
    int peer;
    at::Tensor tensor;
  };

  WorkPointer launch(Call call);
  WorkPointer message(Tensors& tensors, int peer, bool outgoing);
  /// Has `communicator` run it, and the work completed afterwards.
  c10::intrusive_ptr<SimulatedWork> enqueue(
      const std::shared_ptr<Communicator>& communicator,
      const Call& call,
      std::function<void(Mesh&, Deadline)> run);
  void move(Mesh& mesh, const std::vector<Message>& messages, bool pair, Deadline deadline);
  Announcement announce(c10d::OpType type, const at::Tensor& tensor) const;
  Milliseconds timeout_of(Milliseconds wanted);
  std::shared_ptr<Communicator> everyone();
  std::shared_ptr<Communicator> pair_with(int peer);
  c10::DeviceIndex guess_device(const c10d::BarrierOptions& options) const;
  void use_device(const at::Tensor& tensor);
  void refuse_after_failure();
  void remember_failure(std::exception_ptr problem, bool expired);
  void close(Milliseconds patience);

  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<Options> options_;
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> messages_{0};
  std::atomic<bool> initialized_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<Milliseconds> extra_timeout_{Milliseconds(0)};
  std::set<c10::DeviceIndex> used_devices_;
  std::mutex mutex_;
  std::shared_ptr<Communicator> everyone_;
  std::map<int, std::shared_ptr<Communicator>> pairs_;
  std::exception_ptr failure_;
  bool failure_is_timeout_ = false;
  int coalescing_ = 0;
  std::vector<Call> batch_;
  std::vector<Message> batch_messages_;
};

} // namespace ranksafe::nccl
