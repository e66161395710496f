// Before any data moves, the ranks tell each other what they are about to do.
//
// NCCL does not: ranks that call different collectives hang or corrupt data there. Here the difference is an error at
// the call, which is what a rehearsal is for. It also is where two ranks on one device are noticed, as NCCL does when it
// makes its communicator.
#pragma once

#include "mesh.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ranksafe::nccl {

/// What one rank is about to do. Sent as it lies in memory: all ranks run this very library.
struct Announcement {
  uint64_t sequence = 0;
  /// Of the tensor that must be equally long on all ranks; for all_gather the rank's own.
  int64_t elements = 0;
  int32_t type = 0;
  int32_t scalar_type = -1;
  int32_t root = -1;
  int32_t reduction = -1;
  int32_t elements_may_differ = 0;
  int32_t node = 0;
  int32_t device = 0;
  /// Whether there is something to send or to receive: large tensors of a forecast have no values.
  int32_t has_values = 1;
};

/// Where a process's devices really are: its node, and what CUDA_VISIBLE_DEVICES made of the numbers.
void set_place(int node, std::vector<int> device_numbers);
int place_node();
/// The device's number on its node.
int place_device(c10::DeviceIndex visible);

/// Exchanges the announcements; the result has one per rank.
/// Throws DistBackendError for ranks that share a device or call different collectives.
std::vector<Announcement> shake_hands(Mesh& mesh, const Announcement& mine, Deadline deadline);

/// The same between two ranks, for one message.
void check_message(int rank, int peer, const Announcement& sent, const Announcement& expected);

std::string describe(const Announcement& announcement);

} // namespace ranksafe::nccl
