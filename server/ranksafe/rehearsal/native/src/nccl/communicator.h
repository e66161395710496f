// One NCCL communicator with its stream: operations run one after another, on a thread of their own.
#pragma once

#include "mesh.h"

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace ranksafe::nccl {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// `name` is unique within the store, the same on all ranks. Connects when the first operation runs.
  Communicator(c10::intrusive_ptr<c10d::Store> store, const std::string& name, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Runs `operation` after all earlier ones. It must not throw.
  void enqueue(std::function<void(Mesh&)> operation);

  /// Waits until everything that was enqueued has run, at most for `patience`.
  void drain(std::chrono::milliseconds patience);

  /// Ends what is running, lets the rest fail, and joins the thread. May be called again.
  void close();

 private:
  void run();
  void start();

  Mesh mesh_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(Mesh&)>> operations_;
  bool busy_ = false;
  bool stopping_ = false;
  const int process_;
  std::thread thread_;
};

} // namespace ranksafe::nccl
