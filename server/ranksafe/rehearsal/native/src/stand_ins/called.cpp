// What happens when a function of a stand-in library is called.
//
// The stand-ins (ranksafe/rehearsal/native/stand_ins.py) take the place of libtorch_cuda.so, libc10_cuda.so and NVIDIA's
// libraries. Their functions jump here with their own address. This library is the first of them to be loaded, and knows
// nothing of torch, which is not in the process yet.
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

std::atomic<bool> armed{false};
constexpr std::size_t kZeroBytes = 1 << 16;

/// Zeros at an address whose lower 32 bits are zero: read as a reference it is an empty object, and read as a bool or an
/// integer of up to 32 bits it is 0. Functions that torch calls while it is imported return one or the other.
void* zeros() {
  static void* const found = [] {
    for (std::uintptr_t high = 0x100; high < 0x4000; high++) {
      void* wanted = reinterpret_cast<void*>(high << 32);
      void* got = mmap(wanted, kZeroBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (got == wanted) return got;
      if (got != MAP_FAILED) munmap(got, kZeroBytes);
    }
    return std::calloc(1, kZeroBytes);
  }();
  return found;
}

std::string name_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return "a function of the CUDA libraries";
  int status = 0;
  char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : info.dli_sname;
  std::free(readable);
  return name;
}

}  // namespace

extern "C" {

/// From now on a call is a limit of the simulation, not a part of torch's import.
void ranksafe_stand_ins_arm() { armed = true; }

/// Called with the address of the symbol that was called; returns what that function returns.
void* ranksafe_stand_in_called(const void* address) {
  if (!armed) return zeros();
  const std::string message = name_of(address) + " is not simulated";
  // The devices library raises it as torch's own kind of error, which Python gets as NotImplementedError.
  if (void* raise = dlsym(RTLD_DEFAULT, "ranksafe_raise_limit")) {
    reinterpret_cast<void (*)(const char*)>(raise)(message.c_str());
  }
  throw std::runtime_error("ranksafe simulation limit: " + message);
}
}
