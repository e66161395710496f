// Of the caching allocator: segments that grow page by page (`expandable_segments:True`).
#include "caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace ranksafe {

bool CachingAllocator::ByAddress::operator()(const Block* one, const Block* other) const {
  return std::tie(one->stream, one->address) < std::tie(other->stream, other->address);
}

// A block counts as large as it can become; without the setting those of expandable segments are passed over.
CachingAllocator::FreeBlocks::iterator CachingAllocator::best_expandable(
    FreeBlocks& blocks, FreeBlocks::iterator found, c10::StreamId stream) const {
  const auto is_candidate = [&](FreeBlocks::iterator at) { return at != blocks.end() && (*at)->stream == stream; };
  if (!settings_.expandable) {
    while (is_candidate(found) && (*found)->expandable != nullptr) {
      ++found;
    }
    return found;
  }
  const auto size = [](const Block* block) {
    return block->size + (block->next != nullptr && !block->next->mapped ? block->next->size : 0);
  };
  for (auto next = std::next(found);
       (*found)->expandable != nullptr && is_candidate(next) && size(*next) < size(*found);) {
    found = next++;
  }
  return found;
}

Block* CachingAllocator::expand(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room) {
  Block* block = room_to_expand(pool, size, stream, room);
  if (!block->mapped && !map(block, std::min(block->size, size), room)) {
    return nullptr;
  }
  while (block->size < size) {
    Block* next = block->next;
    if (!map(next, std::min(size - block->size, next->size), room)) {
      return nullptr;
    }
    block = next;
  }
  free_[pool].erase(block);
  return block;
}

// The lowest free or unmapped block from which on there are free addresses for `size`.
Block* CachingAllocator::room_to_expand(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room) {
  for (Block* block : unmapped_[pool]) {
    if (block->stream != stream) {
      continue;
    }
    Block* first = block->previous != nullptr && block->previous->is_free() ? block->previous : block;
    int64_t free = 0;
    for (const Block* at = first; free < size && at != nullptr && at->is_free(); at = at->next) {
      free += at->size;
    }
    if (free >= size) {
      return first;
    }
  }
  const int64_t page = pool == kSmallPool ? kSmallSegment : settings_.shared_segment;
  const int64_t pages = (std::max(room.addresses, size) + page - 1) / page;
  auto* block = new Block{next_address_, pages * page, 0, stream, pool};
  block->expandable = new ExpandableSegment{next_address_, page}; // there are few: kept to the end
  block->mapped = false;
  next_address_ += block->size;
  segments_[block->address] = block;
  unmapped_[pool].insert(block);
  return block;
}

// Gives memory to the first `size` bytes of an unmapped block, in whole pages, and joins it with its free neighbours.
bool CachingAllocator::map(Block* block, int64_t size, const Room& room) {
  const int64_t page = block->expandable->page;
  const int64_t mapped = (size + page - 1) / page * page;
  if (statistics_.reserved_bytes[kBothPools].current + mapped > room.left) {
    return false;
  }
  const PoolKind pool = block->pool;
  unmapped_[pool].erase(block);
  if (mapped < block->size) {
    unmapped_[pool].insert(cut(block, mapped));
  }
  block->mapped = true;
  absorb(block, block->previous);
  absorb(block, block->next);
  put_free(block);
  change(&AllocatorStatistics::reserved_bytes, pool, mapped);
  ++statistics_.num_device_alloc;
  return true;
}

// Takes the memory of a free block's whole pages away.
void CachingAllocator::unmap(Block* block) {
  const ExpandableSegment& segment = *block->expandable;
  const int64_t offset = block->address - segment.address;
  const int64_t begin = (offset + segment.page - 1) / segment.page * segment.page;
  const int64_t end = (offset + block->size) / segment.page * segment.page;
  if (begin >= end) {
    return;
  }
  const PoolKind pool = block->pool;
  free_[pool].erase(block);
  if (begin > offset) {
    Block* whole = cut(block, begin - offset);
    put_free(block);
    block = whole;
  }
  if (block->size > end - begin) {
    put_free(cut(block, end - begin));
  }
  block->mapped = false;
  absorb(block, block->previous);
  absorb(block, block->next);
  unmapped_[pool].insert(block);
  change(&AllocatorStatistics::reserved_bytes, pool, begin - end);
  ++statistics_.num_device_free;
}

} // namespace ranksafe
