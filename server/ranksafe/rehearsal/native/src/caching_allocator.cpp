#include "caching_allocator.h"

#include <algorithm>
#include <tuple>

namespace ranksafe {
namespace {

int64_t rounded_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

PoolKind pool_of(int64_t size) {
  return size <= kLargestSmallBlock ? kSmallPool : kLargePool;
}

bool is_worth_splitting(PoolKind pool, int64_t rest) {
  return pool == kSmallPool ? rest >= kBlockUnit : rest > kLargestSmallBlock;
}

} // namespace

void Statistic::change(int64_t amount) {
  current += amount;
  peak = std::max(peak, current);
  (amount > 0 ? allocated : freed) += std::abs(amount);
}

int64_t segment_bytes(int64_t bytes) {
  if (bytes <= kLargestSmallBlock) {
    return kSmallSegment;
  }
  return bytes < kOwnSegment ? kSharedSegment : rounded_up(bytes, kOwnSegmentUnit);
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

Block* CachingAllocator::take(int64_t bytes, c10::StreamId stream, int64_t limit) {
  const int64_t size = rounded_up(bytes, kBlockUnit);
  const PoolKind pool = pool_of(size);
  Block* block = take_free(pool, size, stream);
  if (block == nullptr) {
    const int64_t wanted = segment_bytes(size);
    const int64_t& reserved = statistics_.reserved_bytes[kBothPools].current;
    if (reserved + wanted > limit) {
      release_free_segments();
      ++statistics_.num_alloc_retries;
    }
    if (reserved + wanted > limit) {
      ++statistics_.num_ooms;
      return nullptr;
    }
    block = new_segment(pool, wanted, stream);
  }
  const int64_t before = block->is_split() ? block->size : 0;
  if (is_worth_splitting(pool, block->size - size)) {
    split(block, size);
    // A free part shrinks, or a whole segment becomes a taken and a free part.
    change(&AllocatorStatistics::inactive_split, pool, before == 0 ? 1 : 0);
    change(&AllocatorStatistics::inactive_split_bytes, pool, before == 0 ? block->next->size : -size);
  } else if (before > 0) {
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
  const auto found = free_[pool].lower_bound(&smallest);
  if (found == free_[pool].end() || (*found)->stream != stream) {
    return nullptr;
  }
  Block* block = *found;
  free_[pool].erase(found);
  return block;
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

void CachingAllocator::split(Block* block, int64_t size) {
  auto* rest = new Block{block->address + size, block->size - size, 0, block->stream, block->pool, block, block->next};
  if (rest->next != nullptr) {
    rest->next->previous = rest;
  }
  block->next = rest;
  block->size = size;
  free_[block->pool].insert(rest);
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
  change(&AllocatorStatistics::inactive_split, pool, parts);
  change(&AllocatorStatistics::inactive_split_bytes, pool, bytes);
  free_[pool].insert(block);
}

bool CachingAllocator::absorb(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free()) {
    return false;
  }
  free_[block->pool].erase(neighbour);
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
  for (auto at = free_blocks.begin(); at != free_blocks.end();) {
    Block* block = *at;
    if (block->is_split()) {
      ++at;
      continue;
    }
    at = free_blocks.erase(at);
    segments_.erase(block->address);
    change(&AllocatorStatistics::segment, block->pool, -1);
    change(&AllocatorStatistics::reserved_bytes, block->pool, -block->size);
    ++statistics_.num_device_free;
    delete block;
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
