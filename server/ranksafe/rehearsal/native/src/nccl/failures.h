// The words of NCCL and of torch's ProcessGroupNCCL for what goes wrong between ranks.
//
// The texts of ProcessGroupNCCL were read in the strings of libtorch_cuda.so of torch 2.15.0; those of NCCL itself
// ("Duplicate GPU detected") are written after public reports, because its library is not part of torch.
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

namespace ranksafe::nccl {

/// One collective as its failures name it.
struct OperationName {
  std::string group_uid;
  std::string group_description;
  int rank = 0;
  uint64_t sequence = 0;
  std::string type;
  int64_t elements_in = 0;
  int64_t elements_out = 0;
  std::chrono::milliseconds timeout{0};
};

/// Turns what the transport threw into what ProcessGroupNCCL throws (DistBackendError); others are returned as they are.
std::exception_ptr as_nccl_failure(
    std::exception_ptr problem,
    const OperationName& operation,
    std::chrono::milliseconds waited);

/// Two ranks of one communicator use one device.
[[noreturn]] void throw_duplicate_device(int rank, int other, int device);

/// Ranks do not call the same collective. NCCL does not notice: a real job hangs, or computes nonsense.
[[noreturn]] void throw_mismatch(int rank, const std::string& mine, int other, const std::string& theirs);

/// As torch names the version in errors, for example "2.30.7".
void set_version_text(std::string version);

} // namespace ranksafe::nccl
