// What is left to do about threads that want the interpreter's lock while the interpreter ends.
#pragma once

namespace ranksafe::nccl {

/// Before CPython 3.14 such a thread is unwound by force, which C++ answers with "terminate called without an active
/// exception": an abort of a program that succeeded (torch 2.13 with gloo's threads). From here on the thread waits for
/// the end of the process instead, as it does in CPython 3.14 (python/cpython#87135). Every other termination stays.
void keep_forced_unwinding_from_aborting();

} // namespace ranksafe::nccl
