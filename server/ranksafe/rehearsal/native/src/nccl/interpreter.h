// Waiting for a thread that may need Python, from a thread that may hold its lock.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ranksafe::nccl {

/// Runs `action` with the interpreter lock released, if this thread holds it.
template <typename Action>
void without_interpreter_lock(const Action& action) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    const pybind11::gil_scoped_release released;
    action();
  } else {
    action();
  }
}

} // namespace ranksafe::nccl
