// ProcessGroupNCCL.Options and its `config`, as scripts set them. They are kept and change nothing here.
#pragma once

#include "../torch_compatibility.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <optional>

namespace ranksafe::nccl {

/// ncclConfig_t, as torch 2.15 shows it.
struct Config {
  int blocking = kUnset;
  int cga_cluster_size = kUnset;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  int split_share = kUnset;
  int traffic_class = kUnset;
  int collnet_enable = kUnset;
  int cta_policy = kUnset;
  int shrink_share = kUnset;
  int nvls_ctas = kUnset;
  std::optional<std::string> net_name;
  std::optional<std::string> comm_name;

  /// NCCL_CONFIG_UNDEF_INT.
  static constexpr int kUnset = INT32_MIN;
};

class SimulatedProcessGroup;

struct Options : c10d::Backend::Options {
  explicit Options(bool is_high_priority_stream = false);
  Options(const Options&) = default;

  // No `override`: torch before 2.15 has no such method.
  virtual c10::intrusive_ptr<c10d::Backend::Options> clone() const {
    return c10::make_intrusive<Options>(*this);
  }

  bool is_high_priority_stream;
  Config config;
  c10::intrusive_ptr<c10d::Backend> split_from;
  int split_color = kNoColor - 1;
#if !RANKSAFE_TORCH_AT_LEAST(2, 9)
  std::vector<uint64_t> global_ranks_in_group;
  std::string group_name;
#endif

  /// NCCL_SPLIT_NOCOLOR.
  static constexpr int kNoColor = -1;
};

/// The global number of each rank of the group; empty: the group is everybody.
inline std::vector<uint64_t> global_ranks(const c10d::Backend::Options& options) {
#if RANKSAFE_TORCH_AT_LEAST(2, 9)
  return options.global_ranks_in_group;
#else
  const auto* ours = dynamic_cast<const Options*>(&options);
  return ours == nullptr ? std::vector<uint64_t>() : ours->global_ranks_in_group;
#endif
}

} // namespace ranksafe::nccl
