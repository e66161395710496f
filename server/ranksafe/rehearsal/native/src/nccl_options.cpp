// libtorch_python of a CUDA build calls this constructor while it is imported: it is the default of an argument of
// ProcessGroupNCCL.Options in the Python bindings. The class lives in libtorch_cuda, which is not loaded here. The
// bindings only keep the object as a c10d::Backend::Options, so that is what is made. Nobody calls it in a CPU build.
#if __has_include(<torch/csrc/distributed/c10d/Backend.hpp>)
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <new>

#ifdef __GNUC__
extern "C" __attribute__((visibility("default"))) void* ranksafe_nccl_options(void* memory, bool) asm(
    "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb");

extern "C" void* ranksafe_nccl_options(void* memory, bool) {
  return new (memory) c10d::Backend::Options("nccl", std::chrono::minutes(10));
}
#endif
#endif
