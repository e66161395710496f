// What a device held when most of it was allocated: which blocks, taken in which phase of training, by which line.
#pragma once

#include "caching_allocator.h"

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace ranksafe {

// By number for the Python half.
enum class Phase : uint8_t {
  forward, // gradients are wanted: a forward pass and its loss
  backward,
  recomputed, // a forward pass once more, within the backward pass
  optimizer,
  no_gradients, // everything else: loading, evaluation, generation
};
inline constexpr std::size_t kPhases = 5;

// What a tensor is for, as far as somebody said so. By number for the Python half.
enum class Purpose : uint8_t { unknown, parameter, gradient, optimizer_state, buffer, workspace, gathered, bucket };

struct HeldBlock {
  int64_t size;
  int64_t taken_at; // a count of moments: of blocks taken and given back
  int64_t gone_at; // 0: still held
  int32_t place; // what `watch_places` was answered; -1: not asked
  Phase phase;
  Purpose purpose;
};

struct PhasePeak {
  int64_t allocated = 0;
  int64_t reserved = 0;
};

// One device's, of the whole process: nothing that the program resets. Not synchronised.
class MemoryPeak {
 public:
  // Notes a block that was just taken; whether its place in the program is to be asked for.
  bool take(const Block* block, Phase phase, const AllocatorStatistics& now);
  void give_back(const Block* block);
  // Memory ran out: `bytes` more were wanted.
  void refuse(int64_t bytes, const AllocatorStatistics& now);
  void set_place(const Block* block, int32_t place);
  void set_purpose(const Block* block, Purpose purpose);

  // Allocated at most, or wanted at most where that is more and was refused.
  int64_t allocated() const {
    return allocated_;
  }
  int64_t refused() const {
    return refused_;
  }
  int32_t place() const {
    return place_;
  }
  Phase phase() const {
    return phase_;
  }
  const std::array<PhasePeak, kPhases>& by_phase() const {
    return by_phase_;
  }
  // What was held at the peak, in no order.
  std::vector<HeldBlock> blocks() const;
  // What was held since the moment `is_whole_since`, and what was given back, in no order.
  std::vector<HeldBlock> history() const;
  int64_t is_whole_since() const {
    return forgotten_at_;
  }
  int64_t moment() const {
    return moment_;
  }

 private:
  std::unordered_map<const Block*, HeldBlock> held_;
  std::vector<HeldBlock> gone_; // held at the peak, given back since
  std::deque<HeldBlock> past_; // given back, the oldest first; so many are kept
  int64_t forgotten_at_ = 0; // when the last one was given back that is not kept
  std::array<PhasePeak, kPhases> by_phase_;
  int64_t moment_ = 0;
  int64_t peak_at_ = 0;
  int64_t allocated_ = 0;
  int64_t asked_at_ = 0; // bytes of the peak whose place was asked for last
  int64_t refused_ = 0;
  int32_t place_ = -1;
  Phase phase_ = Phase::no_gradients;
};

// The phase of the calling thread's work.
Phase current_phase();
// An optimizer's step begins or ends.
void set_optimizer_at_work(bool at_work);
// From now on `place` says which line of the program is at work, as a number of its own; null: nobody can say any more.
void watch_places(int32_t (*place)());
int32_t current_place();

} // namespace ranksafe
