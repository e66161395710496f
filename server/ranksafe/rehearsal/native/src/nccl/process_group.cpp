#include "process_group.h"

#include "../forecast_mode.h"
#include "checks.h"
#include "interpreter.h"

#include <ATen/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

namespace ranksafe::nccl {

namespace {

std::mutex& groups_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

std::set<SimulatedProcessGroup*>& groups() {
  static auto* all = new std::set<SimulatedProcessGroup*>();
  return *all;
}

std::string text_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown";
  }
}

bool is_expired(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const Expired&) {
    return true;
  } catch (...) {
    return false;
  }
}

int64_t elements_of(const Tensors& tensors) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  return elements;
}

} // namespace

Options::Options(bool is_high_priority_stream)
    : c10d::Backend::Options("nccl", Milliseconds(10 * 60 * 1000)), is_high_priority_stream(is_high_priority_stream) {}

SimulatedProcessGroup::SimulatedProcessGroup(
    c10::intrusive_ptr<c10d::Store> store,
    int rank,
    int size,
    c10::intrusive_ptr<Options> options)
    : Backend(rank, size), store_(std::move(store)), options_(std::move(options)) {
  TORCH_CHECK_WITH(
      ValueError,
      c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount() > 0,
      "ProcessGroupNCCL is only supported with GPUs, no GPUs found!");
  init();
  const std::lock_guard<std::mutex> lock(groups_mutex());
  groups().insert(this);
}

SimulatedProcessGroup::~SimulatedProcessGroup() {
  {
    const std::lock_guard<std::mutex> lock(groups_mutex());
    groups().erase(this);
  }
  without_interpreter_lock([this] { close(Milliseconds(0)); });
}

Milliseconds SimulatedProcessGroup::timeout_of(Milliseconds wanted) {
  const Milliseconds timeout = wanted == c10d::kUnsetTimeout ? options_->timeout : wanted;
  return timeout + extra_timeout_.load();
}

Announcement SimulatedProcessGroup::announce(c10d::OpType type, const at::Tensor& tensor) const {
  Announcement announcement;
  announcement.type = static_cast<int32_t>(type);
  announcement.elements = tensor.numel();
  announcement.scalar_type = static_cast<int32_t>(tensor.scalar_type());
  announcement.node = place_node();
  announcement.device = place_device(tensor.device().index());
  return announcement;
}

void SimulatedProcessGroup::use_device(const at::Tensor& tensor) {
  const auto bound = getBoundDeviceId();
  if (bound && *bound != tensor.device())
    C10_THROW_ERROR(
        DistBackendError,
        "Attempt to perform collective on tensor not on device passed to init_process_group");
  used_devices_.insert(tensor.device().index());
}

std::shared_ptr<Communicator> SimulatedProcessGroup::everyone() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!everyone_) everyone_ = std::make_shared<Communicator>(store_, "everyone", rank_, size_);
  return everyone_;
}

std::shared_ptr<Communicator> SimulatedProcessGroup::pair_with(int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& pair = pairs_[peer];
  if (!pair) {
    const std::string name = c10::str("pair/", std::min(rank_, peer), "-", std::max(rank_, peer));
    pair = std::make_shared<Communicator>(store_, name, rank_ < peer ? 0 : 1, 2);
  }
  return pair;
}

void SimulatedProcessGroup::refuse_after_failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_)
    C10_THROW_ERROR(DistBackendError, c10::str("NCCL communicator was aborted on rank ", rank_, "."));
  if (failure_)
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            "NCCL communicator was aborted on rank ", rank_, ".  Original reason for failure was: ",
            text_of(failure_)));
}

void SimulatedProcessGroup::remember_failure(std::exception_ptr problem, bool expired) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) return;
  failure_ = std::move(problem);
  failure_is_timeout_ = expired;
}

c10::intrusive_ptr<SimulatedWork> SimulatedProcessGroup::enqueue(
    const std::shared_ptr<Communicator>& communicator,
    const Call& call,
    std::function<void(Mesh&, Deadline)> run) {
  refuse_after_failure();
  OperationName name;
  name.group_uid = getGroupUid();
  name.group_description = getGroupDesc();
  name.rank = rank_;
  name.sequence = call.announcement.sequence;
  name.type = c10d::opTypeToString(call.type);
  name.elements_in = elements_of(call.inputs);
  name.elements_out = elements_of(call.outputs);
  name.timeout = timeout_of(call.timeout);
  auto work = c10::make_intrusive<SimulatedWork>(name, call.type, call.outputs, call.title, call.inputs);
  const auto& any = call.outputs.empty() ? call.inputs : call.outputs;
  const auto device = any.empty() ? std::optional<at::Device>() : std::optional<at::Device>(any.front().device());
  auto self = c10::intrusive_ptr<SimulatedProcessGroup>::unsafe_reclaim_from_nonowning(this);
  communicator->enqueue([self, work, name, device, run = std::move(run)](Mesh& mesh) {
    std::exception_ptr problem;
    bool expired = false;
    // Callbacks of the work's future find the device that they would find on a real one.
    const at::OptionalDeviceGuard guard(device);
    try {
      run(mesh, work->started() + name.timeout);
      self->initialized_ = true;
    } catch (...) {
      expired = is_expired(std::current_exception());
      const auto waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - work->started());
      problem = as_nccl_failure(std::current_exception(), name, waited);
      self->remember_failure(problem, expired);
    }
    self->extra_timeout_ = Milliseconds(0);
    work->complete(problem, expired);
  });
  return work;
}

namespace {

bool has_values(const Tensors& inputs, const Tensors& outputs) {
  std::size_t bytes = 0;
  for (const Tensors* tensors : {&inputs, &outputs}) {
    for (const at::Tensor& tensor : *tensors) {
      if (!is_floating(tensor)) return true;
      bytes += tensor.nbytes();
    }
  }
  return bytes < kLargeBytes;
}

} // namespace

WorkPointer SimulatedProcessGroup::launch(Call call) {
  call.announcement.sequence = ++sequence_;
  call.announcement.has_values = !is_forecast() || has_values(call.inputs, call.outputs);
  for (const at::Tensor& tensor : call.outputs.empty() ? call.inputs : call.outputs) {
    use_device(tensor);
    break;
  }
  if (coalescing_ > 0) {
    batch_.push_back(std::move(call));
    return nullptr;
  }
  auto work = enqueue(everyone(), call, [call](Mesh& mesh, Deadline deadline) {
    const auto everybody = shake_hands(mesh, call.announcement, deadline);
    // All ranks or none: the root of a scatter has large tensors where the others have small ones.
    const bool sends = std::any_of(
        everybody.begin(), everybody.end(), [](const Announcement& each) { return each.has_values != 0; });
    if (sends) call.run(mesh, everybody, deadline);
  });
  if (call.waits) work->wait();
  return work;
}

WorkPointer SimulatedProcessGroup::message(Tensors& tensors, int peer, bool outgoing) {
  check_single(tensors.size());
  const at::Tensor& tensor = tensors.front();
  check_tensor_for_peer(tensor);
  use_device(tensor);
  const Message one{outgoing, peer, tensor};
  if (coalescing_ > 0) {
    batch_messages_.push_back(one);
    return nullptr;
  }
  const auto type = outgoing ? c10d::OpType::SEND : c10d::OpType::RECV;
  Call call{type, outgoing ? "nccl:send" : "nccl:recv", {}, {tensor}, announce(type, tensor)};
  call.announcement.sequence = ++messages_;
  return enqueue(pair_with(peer), call, [this, one](Mesh& mesh, Deadline deadline) {
    move(mesh, {one}, /*pair=*/true, deadline);
  });
}

WorkPointer SimulatedProcessGroup::send(Tensors& tensors, int peer, int /*tag*/) {
  return message(tensors, peer, /*outgoing=*/true);
}

WorkPointer SimulatedProcessGroup::recv(Tensors& tensors, int peer, int /*tag*/) {
  return message(tensors, peer, /*outgoing=*/false);
}

WorkPointer SimulatedProcessGroup::recvAnysource(Tensors& /*tensors*/, int /*tag*/) {
  C10_THROW_ERROR(NotImplementedError, "ProcessGroupNCCL does not support recvAnysource");
}

void SimulatedProcessGroup::move(Mesh& mesh, const std::vector<Message>& messages, bool pair, Deadline deadline) {
  // Each message is announced first, so that a receiver never waits for bytes that the sender does not have.
  std::deque<Announcement> announced;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (const Message& message : messages) {
    const int index = pair ? 1 - mesh.rank() : message.peer;
    const Span data = bytes_of(message.tensor);
    const auto type = message.outgoing ? c10d::OpType::SEND : c10d::OpType::RECV;
    announced.push_back(announce(type, message.tensor));
    Announcement& header = announced.back();
    if (message.outgoing) {
      outgoing.push_back({index, &header, sizeof(header)});
      outgoing.push_back({index, data.data, data.bytes});
      continue;
    }
    const Announcement expected = header;
    incoming.push_back({index, &header, sizeof(header), [this, &header, expected, peer = message.peer] {
                          check_message(rank_, peer, header, expected);
                        }});
    incoming.push_back({index, data.data, data.bytes});
  }
  mesh.exchange(outgoing, incoming, deadline);
}

void SimulatedProcessGroup::startCoalescing() {
  ++coalescing_;
}

WorkPointer SimulatedProcessGroup::endCoalescing() {
  TORCH_CHECK(coalescing_ > 0, "Something went wrong. Did you call end_coalescing before start_coalescing?");
  if (--coalescing_ > 0) return nullptr;
  const std::vector<Call> calls = std::exchange(batch_, {});
  const std::vector<Message> messages = std::exchange(batch_messages_, {});
  if (calls.empty() && messages.empty()) return nullptr;
  Call all{c10d::OpType::COALESCED, "nccl:coalesced", {}, {}, {}};
  for (const Call& call : calls) {
    all.inputs.insert(all.inputs.end(), call.inputs.begin(), call.inputs.end());
    all.outputs.insert(all.outputs.end(), call.outputs.begin(), call.outputs.end());
  }
  for (const Message& message : messages) all.outputs.push_back(message.tensor);
  all.announcement.sequence = sequence_;
  return enqueue(everyone(), all, [this, calls, messages](Mesh& mesh, Deadline deadline) {
    for (const Call& call : calls) call.run(mesh, shake_hands(mesh, call.announcement, deadline), deadline);
    if (!messages.empty()) move(mesh, messages, /*pair=*/false, deadline);
  });
}

c10::DeviceIndex SimulatedProcessGroup::guess_device(const c10d::BarrierOptions& options) const {
  if (!options.device_ids.empty()) return static_cast<c10::DeviceIndex>(options.device_ids.front());
  if (options.device && options.device->has_index()) return options.device->index();
  if (const auto bound = getBoundDeviceId()) return bound->index();
  if (!used_devices_.empty()) return *used_devices_.begin();
  TORCH_WARN_ONCE(
      "Guessing device ID based on global rank. This can cause a hang if rank to GPU mapping is heterogeneous. You can "
      "specify device_id in init_process_group()");
  const auto ranks = global_ranks(*options_);
  const auto global = ranks.empty() ? static_cast<uint64_t>(rank_) : ranks.at(static_cast<size_t>(rank_));
  const auto devices = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount();
  return static_cast<c10::DeviceIndex>(global % static_cast<uint64_t>(devices));
}

WorkPointer SimulatedProcessGroup::barrier(const c10d::BarrierOptions& options) {
  const c10::DeviceIndex device = guess_device(options);
  used_devices_.insert(device);
  Call call{c10d::OpType::BARRIER, "nccl:all_reduce_barrier", {}, {}, {}};
  call.announcement.type = static_cast<int32_t>(call.type);
  call.announcement.node = place_node();
  call.announcement.device = place_device(device);
  call.timeout = options.timeout;
  // ProcessGroupNCCL holds up the host in a barrier, whether it was asked for asynchronously or not.
  call.waits = coalescing_ == 0;
  call.run = [](Mesh&, const std::vector<Announcement>&, Deadline) {};
  return launch(std::move(call));
}

c10::intrusive_ptr<c10d::Backend> SimulatedProcessGroup::split(
    const c10::intrusive_ptr<c10d::Store>& store,
    const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) return nullptr;
  auto* own = dynamic_cast<Options*>(options.get());
  TORCH_CHECK(own != nullptr, "opts not a ProcessGroupNCCL::Options.");
  auto kept = c10::make_intrusive<Options>(*own);
  const auto rank = static_cast<int>(std::distance(ranks.begin(), found));
  return c10::make_intrusive<SimulatedProcessGroup>(store, rank, static_cast<int>(ranks.size()), kept);
}

c10::intrusive_ptr<c10d::Backend> SimulatedProcessGroup::merge(
    const c10::intrusive_ptr<c10d::Store>& store,
    const c10::intrusive_ptr<c10d::Backend::Options>& options,
    const int& rank,
    const int& size) {
  auto* own = dynamic_cast<Options*>(options.get());
  TORCH_CHECK(own != nullptr, "opts not a ProcessGroupNCCL::Options.");
  return c10::make_intrusive<SimulatedProcessGroup>(store, rank, size, c10::make_intrusive<Options>(*own));
}

void SimulatedProcessGroup::eagerConnectSingleDevice(at::Device device) {
  used_devices_.insert(device.index());
  Announcement announcement;
  announcement.type = static_cast<int32_t>(c10d::OpType::UNKNOWN);
  announcement.node = place_node();
  announcement.device = place_device(device.index());
  Call call{c10d::OpType::UNKNOWN, nullptr, {}, {}, announcement};
  enqueue(everyone(), call, [announcement](Mesh& mesh, Deadline deadline) {
    shake_hands(mesh, announcement, deadline);
  })->wait();
}

c10d::ErrorType SimulatedProcessGroup::getError() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) return c10d::ErrorType::SUCCESS;
  return failure_is_timeout_ ? c10d::ErrorType::TIMEOUT : c10d::ErrorType::COMM_ERROR;
}

void SimulatedProcessGroup::waitForPendingWorks() {
  without_interpreter_lock([this] {
    everyone()->drain(options_->timeout);
  });
}

void SimulatedProcessGroup::abort() {
  aborted_ = true;
  without_interpreter_lock([this] { close(Milliseconds(0)); });
}

void SimulatedProcessGroup::shutdown() {
  without_interpreter_lock([this] { close(options_->timeout); });
  aborted_ = true;
}

void SimulatedProcessGroup::close(Milliseconds patience) {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (everyone_) all.push_back(everyone_);
    for (const auto& [peer, pair] : pairs_) all.push_back(pair);
  }
  for (const auto& communicator : all) {
    if (patience.count() > 0) communicator->drain(patience);
    communicator->close();
  }
}

void SimulatedProcessGroup::close_all(Milliseconds patience) {
  std::vector<SimulatedProcessGroup*> all;
  {
    const std::lock_guard<std::mutex> lock(groups_mutex());
    all.assign(groups().begin(), groups().end());
  }
  for (SimulatedProcessGroup* group : all) group->close(patience);
}

} // namespace ranksafe::nccl
