// The algorithm of CUDA's caching allocator without memory behind it: which blocks and segments a device would hold
// (c10/cuda/CUDACachingAllocator.cpp; the same in torch 2.0 to 2.13, and measured on an H100 with torch 2.11, but for the
// settings of PYTORCH_CUDA_ALLOC_CONF, which were only read there).
//
// Not modelled: private pools of CUDA graphs, and the delay of `record_stream`: work of another stream is always done
// when a block is given back.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ranksafe {

inline constexpr int64_t kBlockUnit = 512; // every block's size is a multiple of it
inline constexpr int64_t kLargestSmallBlock = int64_t{1} << 20;
inline constexpr int64_t kSmallSegment = int64_t{2} << 20;
inline constexpr int64_t kSharedSegment = int64_t{20} << 20; // of large blocks below `kOwnSegment`
inline constexpr int64_t kOwnSegment = int64_t{10} << 20;
inline constexpr int64_t kOwnSegmentUnit = int64_t{2} << 20;

inline constexpr std::size_t kRoundedIntervals = 16; // powers of 2 from 1 MiB to 64 GiB

// Of PYTORCH_CUDA_ALLOC_CONF, in bytes; what is not said is torch's default.
struct AllocatorSettings {
  bool expandable = false; // one segment that grows for each pool and stream
  int64_t largest_split = std::numeric_limits<int64_t>::max(); // max_split_size_mb: free blocks from here on stay whole
  int64_t unsplit_rounding = kSharedSegment; // max_non_split_rounding_mb: by how much such a block may be too large
  int64_t shared_segment = kSharedSegment; // large_segment_size_mb
  double collects_from = 0; // garbage_collection_threshold, as a part of what the process may use; 0: never
  std::array<int64_t, kRoundedIntervals> divisions{}; // roundup_power2_divisions; 0 and 1: none
};

// What a device has for segments, in bytes.
struct Room {
  int64_t left;
  std::optional<int64_t> allowed; // of set_per_process_memory_fraction
  int64_t addresses; // of an expandable segment: more than there is memory, so that it seldom ends
};

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

// A range of addresses of which pages get memory as it is needed.
struct ExpandableSegment {
  int64_t address;
  int64_t page;
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
  const ExpandableSegment* expandable = nullptr; // that it is a part of
  bool mapped = true; // has memory
  int64_t searches = 0; // of its pool so far, when it was given back

  bool is_free() const {
    return requested == 0;
  }
  bool is_split() const {
    return previous != nullptr || next != nullptr;
  }
};

// One device's. Not synchronised.
class CachingAllocator {
 public:
  CachingAllocator() = default;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  void configure(const AllocatorSettings& settings) {
    settings_ = settings;
  }
  // A block of at least `bytes` > 0 for work on `stream`. Null where all segments together would exceed the room, even
  // after every segment without an allocated block was given back.
  Block* take(int64_t bytes, c10::StreamId stream, const Room& room);
  void give_back(Block* block);
  void release_free_segments();

  const AllocatorStatistics& statistics() const {
    return statistics_;
  }
  // The bytes that CUDA is asked for when no free block holds `bytes`; what an out-of-memory message names.
  int64_t segment_bytes(int64_t bytes) const;
  void reset_peaks();
  void reset_sums();
  // The first block of each segment, by address; of an expandable one parts may not be mapped.
  std::vector<const Block*> segments() const;

 private:
  struct BySize {
    bool operator()(const Block* one, const Block* other) const;
  };
  struct ByAddress {
    bool operator()(const Block* one, const Block* other) const;
  };
  using FreeBlocks = std::set<Block*, BySize>;

  int64_t rounded(int64_t bytes) const;
  bool is_worth_splitting(PoolKind pool, int64_t size, int64_t rest) const;
  Block* take_free(PoolKind pool, int64_t size, c10::StreamId stream);
  Block* take_new(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room);
  Block* new_segment(PoolKind pool, int64_t size, c10::StreamId stream);
  void put_free(Block* block);
  void release(FreeBlocks& free_blocks);
  void release_segment(Block* block);
  bool release_whole(PoolKind pool, int64_t size, c10::StreamId stream);
  void collect(int64_t allowed);
  // Of expandable segments: expandable_segments.cpp.
  FreeBlocks::iterator best_expandable(FreeBlocks& blocks, FreeBlocks::iterator found, c10::StreamId stream) const;
  Block* expand(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room);
  Block* room_to_expand(PoolKind pool, int64_t size, c10::StreamId stream, const Room& room);
  bool map(Block* block, int64_t size, const Room& room);
  void unmap(Block* block);
  Block* cut(Block* block, int64_t size);
  bool absorb(Block* block, Block* neighbour);
  void change(StatisticByPool AllocatorStatistics::*statistic, PoolKind pool, int64_t amount);
  template <typename Change>
  void for_each_statistic(Change change);

  AllocatorSettings settings_;
  std::array<FreeBlocks, kPoolKinds> free_; // of each pool; nothing in `kBothPools`
  std::array<std::set<Block*, ByAddress>, kPoolKinds> unmapped_;
  std::array<int64_t, kPoolKinds> searches_{}; // while blocks are collected
  std::map<int64_t, Block*> segments_;
  int64_t next_address_ = kOwnSegmentUnit;
  AllocatorStatistics statistics_;
};

} // namespace ranksafe
