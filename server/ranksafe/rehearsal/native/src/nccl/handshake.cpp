#include "handshake.h"

#include "algorithms.h"
#include "failures.h"

namespace ranksafe::nccl {

namespace {

struct Place {
  int node = 0;
  std::vector<int> device_numbers;
};

Place& place() {
  static Place* here = new Place();
  return *here;
}

const char* reduction_name(int code) {
  static constexpr const char* kNames[] = {
      "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};
  return code < static_cast<int>(std::size(kNames)) ? kNames[code] : "unknown";
}

bool same_call(const Announcement& one, const Announcement& other) {
  return one.type == other.type && one.scalar_type == other.scalar_type && one.root == other.root &&
      one.reduction == other.reduction &&
      (one.elements_may_differ != 0 || one.elements == other.elements);
}

} // namespace

void set_place(int node, std::vector<int> device_numbers) {
  place().node = node;
  place().device_numbers = std::move(device_numbers);
}

int place_node() {
  return place().node;
}

int place_device(c10::DeviceIndex visible) {
  const auto& numbers = place().device_numbers;
  const auto index = static_cast<size_t>(visible);
  return index < numbers.size() ? numbers[index] : visible;
}

std::vector<Announcement> shake_hands(Mesh& mesh, const Announcement& mine, Deadline deadline) {
  std::vector<Announcement> all(static_cast<size_t>(mesh.size()));
  std::vector<Span> spans;
  for (Announcement& one : all) spans.push_back({&one, sizeof(Announcement)});
  Announcement own = mine;
  all_gather(mesh, spans, {&own, sizeof(own)}, deadline);
  for (int peer = 0; peer < mesh.size(); ++peer) {
    const Announcement& theirs = all[static_cast<size_t>(peer)];
    if (peer == mesh.rank()) continue;
    if (theirs.node == mine.node && theirs.device == mine.device)
      throw_duplicate_device(mesh.rank(), peer, mine.device);
  }
  for (int peer = 0; peer < mesh.size(); ++peer)
    if (!same_call(mine, all[static_cast<size_t>(peer)]))
      throw_mismatch(mesh.rank(), describe(mine), peer, describe(all[static_cast<size_t>(peer)]));
  return all;
}

void check_message(int rank, int peer, const Announcement& sent, const Announcement& expected) {
  if (sent.node == expected.node && sent.device == expected.device && rank != peer)
    throw_duplicate_device(rank, peer, expected.device);
  if (sent.elements != expected.elements || sent.scalar_type != expected.scalar_type)
    throw_mismatch(rank, describe(expected), peer, describe(sent));
}

std::string describe(const Announcement& announcement) {
  std::string text = c10::str(
      "CollectiveFingerPrint(SequenceNumber=", announcement.sequence,
      ", OpType=", c10d::opTypeToString(static_cast<c10d::OpType>(announcement.type)));
  if (announcement.scalar_type >= 0)
    text += c10::str(
        ", Elements=", announcement.elements, ", TensorDtypes=",
        c10::toString(static_cast<c10::ScalarType>(announcement.scalar_type)));
  if (announcement.root >= 0) text += c10::str(", Root=", announcement.root);
  if (announcement.reduction >= 0) text += c10::str(", ReduceOp=", reduction_name(announcement.reduction));
  return text + ")";
}

} // namespace ranksafe::nccl
