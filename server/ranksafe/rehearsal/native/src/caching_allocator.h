// The algorithm of CUDA's caching allocator without memory behind it: which blocks and segments a device would hold
// (c10/cuda/CUDACachingAllocator.cpp; the same in torch 2.0 to 2.13, and measured on an H100 with torch 2.11).
//
// Not modelled: `expandable_segments` and the other settings of PYTORCH_CUDA_ALLOC_CONF, private pools of CUDA graphs,
// and the delay of `record_stream`: work of another stream is always done when a block is given back.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace ranksafe {

inline constexpr int64_t kBlockUnit = 512; // every block's size is a multiple of it
inline constexpr int64_t kLargestSmallBlock = int64_t{1} << 20;
inline constexpr int64_t kSmallSegment = int64_t{2} << 20;
inline constexpr int64_t kSharedSegment = int64_t{20} << 20; // of large blocks below `kOwnSegment`
inline constexpr int64_t kOwnSegment = int64_t{10} << 20;
inline constexpr int64_t kOwnSegmentUnit = int64_t{2} << 20;

// One of torch's statistics; `allocated` and `freed` are sums since the start or the last reset.
struct Statistic {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;

  void change(int64_t amount);
};

enum PoolKind : std::size_t { kBothPools, kSmallPool, kLargePool, kPoolKinds };
using StatisticByPool = std::array<Statistic, kPoolKinds>;

// What torch.cuda.memory_stats tells, by its names. Active blocks are the allocated ones: nothing is ever pending.
struct AllocatorStatistics {
  StatisticByPool allocation;
  StatisticByPool segment;
  StatisticByPool inactive_split;
  StatisticByPool allocated_bytes;
  StatisticByPool reserved_bytes;
  StatisticByPool inactive_split_bytes;
  StatisticByPool requested_bytes;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
};

// A part of a segment, neighbour of the parts before and after it.
struct Block {
  int64_t address; // made up; only its order matters
  int64_t size;
  int64_t requested = 0; // 0: free
  c10::StreamId stream;
  PoolKind pool;
  Block* previous = nullptr;
  Block* next = nullptr;

  bool is_free() const {
    return requested == 0;
  }
  bool is_split() const {
    return previous != nullptr || next != nullptr;
  }
};

// The bytes that CUDA is asked for when no free block holds `bytes`; what an out-of-memory message names.
int64_t segment_bytes(int64_t bytes);

// One device's. Not synchronised.
class CachingAllocator {
 public:
  CachingAllocator() = default;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // A block of at least `bytes` > 0 for work on `stream`. Null where all segments together would exceed `limit`, even
  // after every segment without an allocated block was given back.
  Block* take(int64_t bytes, c10::StreamId stream, int64_t limit);
  void give_back(Block* block);
  void release_free_segments();

  const AllocatorStatistics& statistics() const {
    return statistics_;
  }
  void reset_peaks();
  void reset_sums();
  // The first block of each segment, by address.
  std::vector<const Block*> segments() const;

 private:
  struct BySize {
    bool operator()(const Block* one, const Block* other) const;
  };
  using FreeBlocks = std::set<Block*, BySize>;

  Block* take_free(PoolKind pool, int64_t size, c10::StreamId stream);
  Block* new_segment(PoolKind pool, int64_t size, c10::StreamId stream);
  void release(FreeBlocks& free_blocks);
  void split(Block* block, int64_t size);
  bool absorb(Block* block, Block* neighbour);
  void change(StatisticByPool AllocatorStatistics::*statistic, PoolKind pool, int64_t amount);
  template <typename Change>
  void for_each_statistic(Change change);

  std::array<FreeBlocks, kPoolKinds> free_; // of each pool; nothing in `kBothPools`
  std::map<int64_t, Block*> segments_;
  int64_t next_address_ = kOwnSegmentUnit;
  AllocatorStatistics statistics_;
};

} // namespace ranksafe
