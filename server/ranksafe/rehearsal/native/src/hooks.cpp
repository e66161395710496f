// What torch's CPU half asks about CUDA through its hooks.
#include "allocators.h"
#include "device_state.h"
#include "generators.h"

#include <ATen/detail/CUDAHooksInterface.h>

namespace ranksafe {
namespace {

// Versions that a machine with a current driver reports. Nothing is computed with these libraries.
constexpr long kCudnnVersion = 91002;
constexpr long kCudartVersion = 13000;

} // namespace

class SimulatedHooks final : public at::CUDAHooksInterface {
 public:
  explicit SimulatedHooks(at::CUDAHooksArgs) {}

  void init() const override {
    require_usable_devices();
  }
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  bool hasCUDA() const override {
    return device_count() > 0;
  }
  bool hasCUDART() const override {
    return true;
  }
  bool hasMAGMA() const override {
    return true;
  }
  bool hasCuSOLVER() const override {
    return true;
  }
  bool hasCuBLASLt() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return device >= 0 && device < device_count();
  }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  int getNumGPUs() const override {
    return device_count();
  }
  c10::DeviceIndex current_device() const override {
    return ranksafe::current_device();
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    check_ordinal(device);
    set_current_device(device);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return ranksafe::current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex previous = ranksafe::current_device();
    if (device >= 0) {
      setCurrentDevice(device);
    }
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  void deviceSynchronize(c10::DeviceIndex) const override {}

  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  c10::Allocator* getCUDADeviceAllocator() const override {
    return device_allocator();
  }
  c10::Device getDeviceFromPtr(void*) const override {
    return {c10::DeviceType::CUDA, ranksafe::current_device()};
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device);
  }

  // torch then takes its own kernels and not cuDNN's, which have no counterpart on the host.
  bool hasCuDNN() const override {
    return false;
  }
  bool compiledWithCuDNN() const override {
    return false;
  }
  bool compiledWithMIOpen() const override {
    return false;
  }
  bool supportsDilatedConvolutionWithCuDNN() const override {
    return true;
  }
  bool supportsDepthwiseConvolutionWithCuDNN() const override {
    return true;
  }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override {
    return true;
  }
  long versionCuDNN() const override {
    return kCudnnVersion;
  }
  long versionCUDART() const override {
    return kCudartVersion;
  }
  double batchnormMinEpsilonCuDNN() const override {
    return 1e-5;
  }
  std::string showConfig() const override {
    return "  - CUDA devices simulated by ranksafe\n";
  }

  int64_t cuFFTGetPlanCacheMaxSize(c10::DeviceIndex) const override {
    return 4096;
  }
  void cuFFTSetPlanCacheMaxSize(c10::DeviceIndex, int64_t) const override {}
  int64_t cuFFTGetPlanCacheSize(c10::DeviceIndex) const override {
    return 0;
  }
  void cuFFTClearPlanCache(c10::DeviceIndex) const override {}
};

} // namespace ranksafe

namespace at {
// torch creates its hooks by this name, once: this library must be loaded before torch asks.
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, ranksafe::SimulatedHooks)
} // namespace at
