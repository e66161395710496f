// Connections between the ranks of one communicator, over the loopback interface.
//
// All ranks of a rehearsal live on this machine, simulated nodes too, so TCP on 127.0.0.1 always reaches them, inside a
// network namespace that has nothing but a loopback interface as well. No thread belongs to a mesh: bytes move while a
// thread is inside `exchange`, which leaves nothing behind that could still be running when the interpreter ends.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ranksafe::nccl {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// A peer ended, or its connection broke, while bytes were awaited from it or sent to it.
struct PeerLost : std::runtime_error {
  PeerLost(int peer, const std::string& reason);
  int peer;
};

/// The deadline passed before all bytes had moved.
struct Expired : std::runtime_error {
  Expired();
};

/// `Mesh::close` was called while bytes were moving, or before.
struct Closed : std::runtime_error {
  Closed();
};

struct Outgoing {
  int peer;
  const void* data;
  size_t bytes;
};

struct Incoming {
  int peer;
  void* data;
  size_t bytes;
  /// Called as soon as these bytes are complete; what it throws ends the exchange.
  std::function<void()> then = {};
};

class Mesh {
 public:
  /// `name` tells the meshes of one store apart. Connects at first use.
  Mesh(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Waits until every rank is here. Does nothing the second time. Throws Expired, PeerLost or Closed.
  void connect(Deadline deadline);

  /// Moves everything at once, in the given order for each peer; a rank's messages to itself are copied.
  /// Throws Expired, PeerLost or Closed, after which the mesh can no longer be used.
  void exchange(
      const std::vector<Outgoing>& outgoing,
      const std::vector<Incoming>& incoming,
      Deadline deadline);

  /// May be called by any thread; ends an exchange that is under way.
  void close() noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  void accept_higher_ranks(int listener, Deadline deadline);
  void connect_to(int peer, Deadline deadline);
  void check(Deadline deadline) const;
  std::string key(int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const int rank_;
  const int size_;
  bool connected_ = false;
  std::atomic<bool> closed_{false};
  std::vector<int> sockets_;
};

} // namespace ranksafe::nccl
