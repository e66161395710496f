#include "generators.h"

#include "device_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <vector>

namespace ranksafe {
namespace {

// CUDA's generators advance by a multiple of four for every kernel (Philox makes four numbers at a time).
constexpr uint64_t kOffsetPerCall = 4;
constexpr int64_t kStateBytes = 16;
constexpr int64_t kSeedBytes = 8;

// SplitMix64's finalizer: neighbouring (seed, offset) pairs must give unrelated seeds.
uint64_t mixed(uint64_t seed, uint64_t offset) {
  uint64_t z = seed + 0x9E3779B97F4A7C15ULL * (offset + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

class SimulatedGenerator final : public c10::GeneratorImpl {
 public:
  explicit SimulatedGenerator(c10::DeviceIndex device)
      : GeneratorImpl(
            c10::Device(c10::DeviceType::CUDA, device),
            c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
    offset_ = offset;
  }
  uint64_t get_offset() const override {
    return offset_;
  }
  uint64_t current_seed() const override {
    return seed_;
  }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom(true));
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    const auto bytes = static_cast<int64_t>(state.numel());
    TORCH_CHECK(bytes == kStateBytes || bytes == kSeedBytes, "RNG state is wrong size");
    const auto* data = static_cast<const uint8_t*>(state.data());
    std::memcpy(&seed_, data, sizeof(seed_));
    offset_ = 0;
    if (bytes == kStateBytes) {
      std::memcpy(&offset_, data + sizeof(seed_), sizeof(offset_));
    }
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::empty({kStateBytes}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    auto* data = state.mutable_data_ptr<uint8_t>();
    std::memcpy(data, &seed_, sizeof(seed_));
    std::memcpy(data + sizeof(seed_), &offset_, sizeof(offset_));
    return state.getIntrusivePtr();
  }
  // Both share one state in CUDA; here the state is the object itself.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override {
    seed_ = state->current_seed();
    offset_ = state->get_offset();
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
  }

  uint64_t seed_of_next_call() {
    const uint64_t seed = mixed(seed_, offset_);
    offset_ += kOffsetPerCall;
    return seed;
  }

 private:
  SimulatedGenerator* clone_impl() const override {
    auto* copy = new SimulatedGenerator(device_.index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

} // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* generators = [] {
    auto* all = new std::vector<at::Generator>();
    for (int index = 0; index < kMaxDevices; ++index) {
      all->push_back(at::make_generator<SimulatedGenerator>(static_cast<c10::DeviceIndex>(index)));
    }
    return all;
  }();
  const c10::DeviceIndex index = device < 0 ? current_device() : device;
  check_ordinal(index);
  return (*generators)[static_cast<std::size_t>(index)];
}

at::Generator new_generator(c10::DeviceIndex device) {
  return at::make_generator<SimulatedGenerator>(device < 0 ? current_device() : device);
}

at::Generator host_generator_for_call(const at::Generator& chosen, c10::DeviceIndex device) {
  at::Generator generator = chosen.defined() ? chosen : default_generator(device);
  TORCH_CHECK(
      generator.device().is_cuda(),
      "Expected a '",
      c10::DeviceType::CUDA,
      "' device type for generator but found '",
      generator.device().type(),
      "'");
  uint64_t seed = 0;
  {
    std::lock_guard<std::mutex> lock(generator.mutex());
    seed = static_cast<SimulatedGenerator*>(generator.unsafeGetGeneratorImpl())->seed_of_next_call();
  }
  return at::detail::createCPUGenerator(seed);
}

} // namespace ranksafe
