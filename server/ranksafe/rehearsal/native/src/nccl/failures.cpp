#include "failures.h"

#include "mesh.h"

#include <algorithm>

namespace ranksafe::nccl {

namespace {

std::string& version_text() {
  static std::string* text = new std::string("unknown");
  return *text;
}

std::string nccl_error(const std::string& kind, const std::string& details) {
  return "NCCL error in: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, " + kind + ", NCCL version " +
      version_text() + "\n" + details;
}

template <typename Make>
std::exception_ptr made(Make make) {
  try {
    make();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::string timeout_text(const OperationName& operation, std::chrono::milliseconds waited) {
  return c10::str(
      "[PG GUID ", operation.group_uid, "(", operation.group_description, ") Rank ", operation.rank,
      "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=", operation.sequence,
      ", OpType=", operation.type, ", NumelIn=", operation.elements_in, ", NumelOut=", operation.elements_out,
      ", Timeout(ms)=", operation.timeout.count(), ") ran for ", waited.count(),
      " milliseconds before timing out.");
}

} // namespace

void set_version_text(std::string version) {
  version_text() = std::move(version);
}

std::exception_ptr as_nccl_failure(
    std::exception_ptr problem,
    const OperationName& operation,
    std::chrono::milliseconds waited) {
  try {
    std::rethrow_exception(problem);
  } catch (const Expired&) {
    return made([&] { C10_THROW_ERROR(DistBackendError, timeout_text(operation, waited)); });
  } catch (const PeerLost& lost) {
    return made([&] {
      C10_THROW_ERROR(
          DistBackendError,
          nccl_error(
              "remote process exited or there was a network error",
              c10::str(
                  "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
                  "prematurely.\nLast error:\nsocketProgress: ", lost.what(), " (rank ", lost.peer, " of this group)")));
    });
  } catch (const Closed&) {
    return made([&] {
      C10_THROW_ERROR(
          DistBackendError, c10::str("NCCL communicator was aborted on rank ", operation.rank, "."));
    });
  } catch (...) {
    return std::current_exception();
  }
}

void throw_duplicate_device(int rank, int other, int device) {
  // NCCL prints the PCI address without its separators; simulated device N sits on bus 16 * (N + 1), as nvidia-smi says.
  char bus[32];
  std::snprintf(bus, sizeof(bus), "%x", (16 * (device + 1) % 256) << 12);
  C10_THROW_ERROR(
      DistBackendError,
      nccl_error(
          "invalid usage (run with NCCL_DEBUG=WARN for details)",
          c10::str(
              "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
              "Duplicate GPU detected : rank ", rank, " and rank ", other, " both on CUDA device ", bus)));
}

void throw_mismatch(int rank, const std::string& mine, int other, const std::string& theirs) {
  const bool first = rank < other;
  C10_THROW_ERROR(
      DistBackendError,
      c10::str(
          "Detected mismatch between collectives on ranks. Rank ", std::min(rank, other), " is running collective: ",
          first ? mine : theirs, ", but Rank ", std::max(rank, other), " is running collective: ",
          first ? theirs : mine,
          ". NCCL does not compare them: on real devices the job hangs until its timeout, or goes on with wrong data."));
}

} // namespace ranksafe::nccl
