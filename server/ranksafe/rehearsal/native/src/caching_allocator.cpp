#include "caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace ranksafe {
namespace {

int64_t rounded_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

PoolKind pool_of(int64_t size) {
  return size <= kLargestSmallBlock ? kSmallPool : kLargePool;
}

int log2_floor(int64_t value) {
  int power = 0;
  while (value >>= 1) {
    ++power;
  }
  return power;
}

} // namespace

void Statistic::change(int64_t amount) {
  current += amount;
  peak = std::max(peak, current);
  (amount > 0 ? allocated : freed) += std::abs(amount);
}

int64_t CachingAllocator::segment_bytes(int64_t bytes) const {
  if (bytes <= kLargestSmallBlock) {
    return kSmallSegment;
  }
  return bytes < kOwnSegment ? settings_.shared_segment : rounded_up(bytes, kOwnSegmentUnit);
}

int64_t CachingAllocator::rounded(int64_t bytes) const {
  const int power = log2_floor(bytes);
  const int interval = std::clamp(power - 20, 0, static_cast<int>(kRoundedIntervals) - 1);
  const int64_t divisions = settings_.divisions[static_cast<std::size_t>(interval)];
  if (divisions <= 1 || bytes <= kBlockUnit * divisions) {
    return rounded_up(bytes, kBlockUnit);
  }
  return rounded_up(bytes, (int64_t{1} << power) >> log2_floor(divisions));
}

bool CachingAllocator::is_worth_splitting(PoolKind pool, int64_t size, int64_t rest) const {
  if (pool == kSmallPool || settings_.expandable) {
    return rest >= kBlockUnit;
  }
  return size < settings_.largest_split && rest > kLargestSmallBlock;
}

bool CachingAllocator::BySize::operator()(const Block* one, const Block* other) const {
  return std::tie(one->stream, one->size, one->address) < std::tie(other->stream, other->size, other->address);
}

void CachingAllocator::change(StatisticByPool AllocatorStatistics::*statistic, PoolKind pool, int64_t amount) {
  if (amount != 0) {
    (statistics_.*statistic)[kBothPools].change(amount);
    (statistics_.*statistic)[pool].change(amount);
  }
}

Block* CachingAllocator::take(int64_t bytes, c10::StreamId stream, const Room& room) {
  const int64_t size = rounded(bytes);
  const PoolKind pool = pool_of(size);
  const bool collects = room.allowed.has_value() && settings_.collects_from > 0;
  searches_[pool] += collects ? 1 : 0;
  Block* block = take_free(pool, size, stream);
  if (block == nullptr) {
    if (collects) {
      collect(*room.allowed);
    }
    block = take_new(pool, size, stream, room);
    if (block == nullptr && release_whole(pool, size, stream)) {
      block = take_new(pool, size, stream, room);
    }
    if (block == nullptr) {
      release_free_segments();
      ++statistics_.num_alloc_retries;
      block = take_new(pool, size, stream, room);
    }
    if (block == nullptr) {
      ++statistics_.num_ooms;
      return nullptr;
    }
  }
  const int64_t before = block->is_split() ? block->size : 0;
  const bool splits = is_worth_splitting(pool, size, block->size - size);
  if (splits) {
    put_free(cut(block, size));
  }
  const bool counts = block->expandable == nullptr; // torch leaves the others out of these two
  if (counts && splits) {
    // A free part shrinks, or a whole segment becomes a taken and a free part.
    change(&AllocatorStatistics::inactive_split, pool, before == 0 ? 1 : 0);
    change(&AllocatorStatistics::inactive_split_bytes, pool, before == 0 ? block->next->size : -size);
  } else if (counts && before > 0) {
    change(&AllocatorStatistics::inactive_split, pool, -1);
    change(&AllocatorStatistics::inactive_split_bytes, pool, -before);
  }
  block->requested = bytes;
  change(&AllocatorStatistics::allocation, pool, 1);
  change(&AllocatorStatistics::allocated_bytes, pool, block->size);
  change(&AllocatorStatistics::requested_bytes, pool, bytes);
  return block;
}

Block* CachingAllocator::take_free(PoolKind pool, int64_t size, c10::StreamId stream) {
  Block smallest{};
  smallest.size = size;
  smallest.stream = stream;
  auto found = free_[pool].lower_bound(&smallest);
  if (found != free_[pool].end() && (*found)->stream == stream && (*found)->expandable != nullptr) {
    found = best_expandable(free_[pool], found, stream);
  }
  if (found == free_[pool].end() || (*found)->stream != stream) {
    return nullptr;
  }
  Block* block = *found;
  const bool is_whole = size >= settings_.largest_split;
  if (is_whole ? block->size >= size + settings_.unsplit_rounding : block->size >= settings_.largest_split) {
    return nullptr;
  }
  free_[pool].erase(found);
  return block;
}

Block* CachingAllocator::take_new(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room) {
  const int64_t reserved = statistics_.reserved_bytes[kBothPools].current;
  const int64_t wanted = segment_bytes(size);
  if (room.allowed.has_value() && reserved + wanted > *room.allowed) {
    return nullptr;
  }
  if (settings_.expandable) {
    return expand(pool, size, stream, room);
  }
  return reserved + wanted > room.left ? nullptr : new_segment(pool, wanted, stream);
}

Block* CachingAllocator::new_segment(PoolKind pool, int64_t size, c10::StreamId stream) {
  auto* block = new Block{next_address_, size, 0, stream, pool};
  segments_[block->address] = block;
  next_address_ += size;
  change(&AllocatorStatistics::segment, pool, 1);
  change(&AllocatorStatistics::reserved_bytes, pool, size);
  ++statistics_.num_device_alloc;
  return block;
}

// Shortens a block that is in no set to `size`; returns its rest, in no set either.
Block* CachingAllocator::cut(Block* block, int64_t size) {
  auto* rest = new Block(*block);
  rest->address += size;
  rest->size -= size;
  rest->requested = 0;
  rest->previous = block;
  if (rest->next != nullptr) {
    rest->next->previous = rest;
  }
  block->next = rest;
  block->size = size;
  return rest;
}

void CachingAllocator::put_free(Block* block) {
  block->searches = searches_[block->pool];
  free_[block->pool].insert(block);
}

void CachingAllocator::give_back(Block* block) {
  const PoolKind pool = block->pool;
  change(&AllocatorStatistics::allocation, pool, -1);
  change(&AllocatorStatistics::allocated_bytes, pool, -block->size);
  change(&AllocatorStatistics::requested_bytes, pool, -block->requested);
  block->requested = 0;
  int64_t parts = 0;
  int64_t bytes = 0;
  for (Block* neighbour : {block->previous, block->next}) {
    const int64_t size = neighbour == nullptr ? 0 : neighbour->size;
    if (absorb(block, neighbour)) {
      parts -= 1;
      bytes -= size;
    }
  }
  if (block->is_split()) {
    parts += 1;
    bytes += block->size;
  }
  if (block->expandable == nullptr) {
    change(&AllocatorStatistics::inactive_split, pool, parts);
    change(&AllocatorStatistics::inactive_split_bytes, pool, bytes);
  }
  put_free(block);
}

bool CachingAllocator::absorb(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != block->mapped) {
    return false;
  }
  if (neighbour->mapped) {
    free_[block->pool].erase(neighbour);
  } else {
    unmapped_[block->pool].erase(neighbour);
  }
  block->size += neighbour->size;
  if (neighbour == block->next) {
    block->next = neighbour->next;
    if (block->next != nullptr) {
      block->next->previous = block;
    }
  } else {
    block->address = neighbour->address;
    block->previous = neighbour->previous;
    if (block->previous != nullptr) {
      block->previous->next = block;
    } else {
      segments_[block->address] = block;
    }
  }
  delete neighbour;
  return true;
}

void CachingAllocator::release_free_segments() {
  ++statistics_.num_sync_all_streams;
  release(free_[kLargePool]);
  release(free_[kSmallPool]);
}

void CachingAllocator::release(FreeBlocks& free_blocks) {
  std::vector<Block*> expandable;
  for (auto at = free_blocks.begin(); at != free_blocks.end();) {
    Block* block = *at++;
    if (block->expandable != nullptr) {
      expandable.push_back(block);
    } else if (!block->is_split()) {
      release_segment(block);
    }
  }
  for (Block* block : expandable) {
    unmap(block);
  }
}

void CachingAllocator::release_segment(Block* block) {
  free_[block->pool].erase(block);
  segments_.erase(block->address);
  change(&AllocatorStatistics::segment, block->pool, -1);
  change(&AllocatorStatistics::reserved_bytes, block->pool, -block->size);
  ++statistics_.num_device_free;
  delete block;
}

// Gives back free blocks that stay whole, the largest first, until they would have held `size`.
bool CachingAllocator::release_whole(PoolKind pool, int64_t size, c10::StreamId stream) {
  if (settings_.largest_split == std::numeric_limits<int64_t>::max()) {
    return false;
  }
  Block wanted{};
  wanted.size = std::max(size, settings_.largest_split);
  wanted.stream = stream;
  auto at = free_[pool].lower_bound(&wanted);
  const auto is_whole = [&](const Block* block) {
    return block->stream == stream && block->size >= settings_.largest_split && !block->is_split() &&
        block->expandable == nullptr;
  };
  if (at != free_[pool].end() && is_whole(*at)) {
    release_segment(*at);
    return true;
  }
  int64_t released = 0;
  while (released < wanted.size && at != free_[pool].begin() && is_whole(*std::prev(at))) {
    Block* block = *std::prev(at);
    released += block->size;
    release_segment(block);
  }
  return released >= wanted.size;
}

// Gives back segments that were not needed for longest, until the threshold is kept.
void CachingAllocator::collect(int64_t allowed) {
  const auto threshold = static_cast<int64_t>(settings_.collects_from * static_cast<double>(allowed));
  const int64_t too_much = statistics_.reserved_bytes[kBothPools].current - threshold;
  std::vector<Block*> left;
  int64_t age = 0;
  const auto age_of = [&](const Block* block) { return searches_[kLargePool] - block->searches; };
  for (Block* block : free_[kLargePool]) {
    if (!block->is_split() && block->expandable == nullptr) {
      left.push_back(block);
      age += age_of(block);
    }
  }
  for (int64_t released = 0; released < too_much && !left.empty();) {
    const double average = static_cast<double>(age) / static_cast<double>(left.size());
    std::vector<Block*> younger;
    for (Block* block : left) {
      if (static_cast<double>(age_of(block)) < average) {
        younger.push_back(block);
        continue;
      }
      released += block->size;
      age -= age_of(block);
      release_segment(block);
    }
    left.swap(younger);
  }
}

template <typename Change>
void CachingAllocator::for_each_statistic(Change change) {
  for (StatisticByPool* by_pool :
       {&statistics_.allocation,
        &statistics_.segment,
        &statistics_.inactive_split,
        &statistics_.allocated_bytes,
        &statistics_.reserved_bytes,
        &statistics_.inactive_split_bytes,
        &statistics_.requested_bytes}) {
    for (Statistic& statistic : *by_pool) {
      change(statistic);
    }
  }
}

void CachingAllocator::reset_peaks() {
  for_each_statistic([](Statistic& statistic) { statistic.peak = statistic.current; });
}

void CachingAllocator::reset_sums() {
  for_each_statistic([](Statistic& statistic) { statistic.allocated = statistic.freed = 0; });
  statistics_.num_alloc_retries = 0;
  statistics_.num_ooms = 0;
  statistics_.num_sync_all_streams = 0;
  statistics_.num_device_alloc = 0;
  statistics_.num_device_free = 0;
}

std::vector<const Block*> CachingAllocator::segments() const {
  std::vector<const Block*> first_blocks;
  for (const auto& [address, block] : segments_) {
    first_blocks.push_back(block);
  }
  return first_blocks;
}

} // namespace ranksafe
