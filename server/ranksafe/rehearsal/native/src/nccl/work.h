// What a collective returns: completed by the communicator's thread, waited for by any other.
#pragma once

#include "failures.h"
#include "mesh.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace ranksafe::nccl {

class SimulatedWork final : public c10d::Work {
 public:
  /// `title` and `inputs` are what a profiler shows.
  SimulatedWork(
      OperationName name,
      c10d::OpType type,
      std::vector<at::Tensor> outputs,
      const char* title,
      const std::vector<at::Tensor>& inputs);

  /// Waits for the data. A real device's stream waits instead of this thread, so a caller is never held up longer there.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  /// Deprecated in ProcessGroupNCCL: throws NotImplementedError, as there.
  bool isSuccess() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override {}
  void blockCurrentStream() { wait(); }
  void abort() override {}
  /// Of a collective: waits for the data first. On a real device the future is complete at once and the stream waits,
  /// so callbacks run in the thread that adds them, on every rank in the order of the program; communication hooks that
  /// start collectives in callbacks (PowerSGD) depend on that order.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() { return result_; }
  float getDuration() const override;
  uint64_t getSequencenumber() const override { return name_.sequence; }
  std::chrono::milliseconds getTimeout() const { return name_.timeout; }

  /// Called once, by the communicator's thread; runs the future's callbacks.
  void complete(std::exception_ptr problem, bool expired);

  c10d::OpType type() const { return opType_; }
  Clock::time_point started() const { return started_; }

 private:
  const OperationName name_;
  const Clock::time_point started_;
  std::atomic<int64_t> microseconds_{-1};
  std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  c10::intrusive_ptr<c10::ivalue::Future> result_;
};

} // namespace ranksafe::nccl
