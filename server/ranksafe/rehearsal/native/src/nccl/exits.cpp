#include "exits.h"

#include <Python.h>

#include <chrono>
#include <exception>
#include <thread>

namespace ranksafe::nccl {

namespace {

/// The main thread needs milliseconds for the rest; one that waits for this very thread must still not wait forever.
constexpr auto kLongest = std::chrono::seconds(10);

std::terminate_handler& previous() {
  static std::terminate_handler handler = nullptr;
  return handler;
}

bool interpreter_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0 || !Py_IsInitialized();
#else
  return _Py_IsFinalizing() != 0 || !Py_IsInitialized();
#endif
}

void wait_or_terminate() {
  if (!std::current_exception() && interpreter_is_ending()) std::this_thread::sleep_for(kLongest);
  if (previous() != nullptr) previous()();
  std::abort();
}

} // namespace

void keep_forced_unwinding_from_aborting() {
  if (std::get_terminate() != &wait_or_terminate) previous() = std::set_terminate(&wait_or_terminate);
}

} // namespace ranksafe::nccl
