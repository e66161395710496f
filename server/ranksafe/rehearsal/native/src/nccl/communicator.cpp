#include "communicator.h"

#include <unistd.h>

namespace ranksafe::nccl {

Communicator::Communicator(c10::intrusive_ptr<c10d::Store> store, const std::string& name, int rank, int size)
    : mesh_(std::move(store), name, rank, size), process_(::getpid()) {}

Communicator::~Communicator() {
  close();
}

void Communicator::enqueue(std::function<void(Mesh&)> operation) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!stopping_, "the communicator was shut down");
    operations_.push_back(std::move(operation));
    if (!thread_.joinable()) start();
  }
  changed_.notify_all();
}

void Communicator::start() {
  // The thread keeps the object: a callback on it may drop what else refers to it.
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void Communicator::drain(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return operations_.empty() && !busy_; });
}

void Communicator::close() {
  mesh_.close();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (!thread_.joinable()) return;
  // A forked child has the object but not the thread; a callback may hold the last reference to its own group.
  if (process_ != ::getpid() || thread_.get_id() == std::this_thread::get_id()) thread_.detach();
  else thread_.join();
}

void Communicator::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !operations_.empty(); });
    if (operations_.empty()) return;
    auto operation = std::move(operations_.front());
    operations_.pop_front();
    busy_ = true;
    lock.unlock();
    operation(mesh_);
    operation = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace ranksafe::nccl
