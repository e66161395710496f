#include "memory_peak.h"

#include <c10/core/GradMode.h>
#include <c10/macros/Export.h>

#include <algorithm>
#include <atomic>

namespace torch::autograd {
// torch/csrc/autograd/graph_task.h, which includes all of autograd; -1 outside a backward pass (torch 2.0 to 2.13).
TORCH_API int get_current_graph_task_id();
} // namespace torch::autograd

namespace ranksafe {
namespace {

// Blocks from this size on are told with the line that took them.
constexpr int64_t kToldWithLine = int64_t{16} << 20;
// A peak that is higher by less than this part of itself has the place of the one before.
constexpr int64_t kPartOfPeak = 1000;
// Dozens of steps of a model of billions of parameters.
constexpr std::size_t kMostPast = 200'000;

std::atomic<bool> optimizer_at_work{false};
std::atomic<int32_t (*)()> place_of_program{nullptr};

} // namespace

bool MemoryPeak::take(const Block* block, Phase phase, const AllocatorStatistics& now) {
  ++moment_;
  held_[block] = {block->size, moment_, 0, -1, phase, Purpose::unknown};
  const int64_t allocated = now.allocated_bytes[kBothPools].current;
  PhasePeak& of_phase = by_phase_[static_cast<std::size_t>(phase)];
  of_phase.allocated = std::max(of_phase.allocated, allocated);
  of_phase.reserved = std::max(of_phase.reserved, now.reserved_bytes[kBothPools].current);
  bool asks = block->size >= kToldWithLine;
  if (allocated > allocated_) {
    allocated_ = allocated;
    peak_at_ = moment_;
    asks = asks || phase != phase_ || allocated - asked_at_ > asked_at_ / kPartOfPeak;
    phase_ = phase;
    gone_.clear();
    if (asks) {
      asked_at_ = allocated;
    }
  }
  return asks;
}

void MemoryPeak::give_back(const Block* block) {
  const auto found = held_.find(block);
  if (found == held_.end()) {
    return; // taken before anybody counted
  }
  found->second.gone_at = ++moment_;
  if (found->second.taken_at <= peak_at_) {
    gone_.push_back(found->second);
  }
  past_.push_back(found->second);
  if (past_.size() > kMostPast) {
    forgotten_at_ = past_.front().gone_at;
    past_.pop_front();
  }
  held_.erase(found);
}

void MemoryPeak::refuse(int64_t bytes, const AllocatorStatistics& now) {
  refused_ = std::max(refused_, now.allocated_bytes[kBothPools].current + bytes);
}

void MemoryPeak::set_place(const Block* block, int32_t place) {
  const auto found = held_.find(block);
  if (found == held_.end()) {
    return;
  }
  found->second.place = place;
  if (found->second.taken_at == peak_at_) {
    place_ = place;
  }
}

void MemoryPeak::set_purpose(const Block* block, Purpose purpose) {
  const auto found = held_.find(block);
  if (found != held_.end() && found->second.purpose == Purpose::unknown) {
    found->second.purpose = purpose;
  }
}

std::vector<HeldBlock> MemoryPeak::blocks() const {
  std::vector<HeldBlock> all = gone_;
  for (const auto& [block, held] : held_) {
    if (held.taken_at <= peak_at_) {
      all.push_back(held);
    }
  }
  return all;
}

std::vector<HeldBlock> MemoryPeak::history() const {
  std::vector<HeldBlock> all(past_.begin(), past_.end());
  for (const auto& [block, held] : held_) {
    all.push_back(held);
  }
  return all;
}

Phase current_phase() {
  const bool wants_gradients = c10::GradMode::is_enabled();
  if (torch::autograd::get_current_graph_task_id() != -1) {
    return wants_gradients ? Phase::recomputed : Phase::backward;
  }
  if (wants_gradients) {
    return Phase::forward;
  }
  return optimizer_at_work.load(std::memory_order_relaxed) ? Phase::optimizer : Phase::no_gradients;
}

void set_optimizer_at_work(bool at_work) {
  optimizer_at_work.store(at_work, std::memory_order_relaxed);
}

void watch_places(int32_t (*place)()) {
  place_of_program.store(place);
}

int32_t current_place() {
  int32_t (*const place)() = place_of_program.load();
  return place == nullptr ? -1 : place();
}

} // namespace ranksafe
