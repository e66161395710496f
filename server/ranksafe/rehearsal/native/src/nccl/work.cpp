#include "work.h"

#include "interpreter.h"

namespace ranksafe::nccl {

SimulatedWork::SimulatedWork(
    OperationName name,
    c10d::OpType type,
    std::vector<at::Tensor> outputs,
    const char* title,
    const std::vector<at::Tensor>& inputs)
    : Work(name.rank, type, title, inputs),
      name_(std::move(name)),
      started_(Clock::now()),
      outputs_(std::move(outputs)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))),
      result_(c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get())) {}

bool SimulatedWork::wait(std::chrono::milliseconds timeout) {
  try {
    Work::wait(timeout);
  } catch (const c10::Error&) {
    if (isCompleted()) throw;
    // It is only the caller's patience that ended; ProcessGroupNCCL has the same words for that.
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
    std::rethrow_exception(as_nccl_failure(std::make_exception_ptr(Expired()), name_, waited));
  }
  future_->wait();
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> SimulatedWork::getFuture() {
  if (!c10d::isP2POp(opType_)) without_interpreter_lock([this] { future_->wait(); });
  return future_;
}

bool SimulatedWork::isSuccess() const {
  C10_THROW_ERROR(NotImplementedError, "WorkNCCL::isSuccess() is deprecated");
}

float SimulatedWork::getDuration() const {
  TORCH_CHECK(microseconds_ >= 0, "getDuration can only be called after work has completed");
  return static_cast<float>(microseconds_) / 1000.0F;
}

void SimulatedWork::complete(std::exception_ptr problem, bool expired) {
  microseconds_ = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_).count();
  // First the waiting threads, then the callbacks: a callback may wait for this very work.
  finish(problem);
  if (problem) {
    const auto outcome = expired ? c10d::WorkResult::TIMEOUT : c10d::WorkResult::COMM_ERROR;
    result_->markCompleted(c10::IValue(static_cast<int64_t>(outcome)));
    future_->setError(problem);
  } else {
    result_->markCompleted(c10::IValue(static_cast<int64_t>(c10d::WorkResult::SUCCESS)));
    future_->markCompleted(c10::IValue(outputs_));
  }
  // What keeps tensors alive beyond this point is the caller's, so that none dies on the communicator's thread.
}

} // namespace ranksafe::nccl
