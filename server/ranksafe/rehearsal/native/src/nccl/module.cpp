// What Python sees: `ProcessGroupNCCL` with its `Options`, and how to set up and end the whole.
#include "exits.h"
#include "interpreter.h"
#include "one_for_all.h"
#include "process_group.h"

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <pybind11/chrono.h>

namespace py = pybind11;
using namespace ranksafe::nccl;

namespace {

/// Times DDP's phases by the host's clock. torch registers its timer for CUDA in libtorch_cuda, which is not there.
class HostTimer final : public c10d::Timer {
 public:
  explicit HostTimer(c10::Device /*device*/) {}

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const int64_t begin = getTimeRef(start);
    const int64_t finish = getTimeRef(end);
    if (begin == c10d::kUnsetTime || finish < begin) return std::nullopt;
    return finish - begin;
  }
};

void bind_options(py::module_& module) {
  py::class_<Config>(module, "NCCLConfig")
      .def(py::init<>())
      .def_readwrite("blocking", &Config::blocking)
      .def_readwrite("cga_cluster_size", &Config::cga_cluster_size)
      .def_readwrite("min_ctas", &Config::min_ctas)
      .def_readwrite("max_ctas", &Config::max_ctas)
      .def_readwrite("split_share", &Config::split_share)
      .def_readwrite("traffic_class", &Config::traffic_class)
      .def_readwrite("collnet_enable", &Config::collnet_enable)
      .def_readwrite("cta_policy", &Config::cta_policy)
      .def_readwrite("shrink_share", &Config::shrink_share)
      .def_readwrite("nvls_ctas", &Config::nvls_ctas)
      .def_readwrite("net_name", &Config::net_name)
      .def_readwrite("comm_name", &Config::comm_name)
      .def("__copy__", [](const Config& self) { return Config(self); })
      .def("__deepcopy__", [](const Config& self, const py::dict&) { return Config(self); }, py::arg("memo"));
  py::class_<Options, c10d::Backend::Options, c10::intrusive_ptr<Options>>(module, "Options")
      .def(py::init<bool>(), py::arg("is_high_priority_stream") = false)
      .def_readwrite("config", &Options::config)
      .def_readwrite("is_high_priority_stream", &Options::is_high_priority_stream)
      .def_readwrite("split_from", &Options::split_from)
      .def_readwrite("split_color", &Options::split_color)
#if !RANKSAFE_TORCH_AT_LEAST(2, 9)
      .def_readwrite("global_ranks_in_group", &Options::global_ranks_in_group)
      .def_readwrite("group_name", &Options::group_name)
#endif
      .def("__copy__", [](const Options& self) { return c10::make_intrusive<Options>(self); })
      .def(
          "__deepcopy__",
          [](const Options& self, const py::dict&) { return c10::make_intrusive<Options>(self); },
          py::arg("memo"));
}

void bind_group(py::module_& module) {
  using Group = SimulatedProcessGroup;
  const auto released = py::call_guard<py::gil_scoped_release>();
  py::class_<Group, c10d::Backend, c10::intrusive_ptr<Group>>(module, "ProcessGroupNCCL")
      .def(
          py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      c10::intrusive_ptr<Options> options) {
            return c10::make_intrusive<Group>(store, rank, size, std::move(options));
          }),
          py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"))
      .def(
          py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, Milliseconds timeout) {
            auto options = c10::make_intrusive<Options>();
            options->timeout = timeout;
            return c10::make_intrusive<Group>(store, rank, size, std::move(options));
          }),
          py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout") = Milliseconds(10 * 60 * 1000))
      .def_property_readonly("options", &Group::options)
      .def_property_readonly("uid", [](const Group& self) { return self.getGroupUid(); })
      .def("_group_start", &Group::startCoalescing)
      .def("_group_end", [](Group& self) { self.endCoalescing(); }, released)
      .def("_set_default_timeout", &Group::setTimeout, py::arg("timeout"))
      .def("set_timeout", &Group::setTimeout, py::arg("timeout"))
      .def("_add_ephemeral_timeout", &Group::addEphemeralTimeout, py::arg("timeout"))
      .def(
          "_verify_work_timeout",
          [](const Group&, const c10::intrusive_ptr<c10d::Work>& work, const Milliseconds& timeout) {
            const auto* own = dynamic_cast<const SimulatedWork*>(work.get());
            return own != nullptr && own->getTimeout() == timeout;
          },
          py::arg("work"), py::arg("timeout"))
      .def("perform_nocolor_split", [](const Group&, const c10::Device&) {}, py::arg("device"))
      .def("register_mem_pool", [](const Group&, const py::object&) {}, py::arg("pool"))
      .def("deregister_mem_pool", [](const Group&, const py::object&) {}, py::arg("pool"))
      .def("comm_split_count", [](const Group&) { return 0; })
      .def("_is_initialized", &Group::is_initialized)
      .def("_get_sequence_number_for_group", &Group::getSequenceNumberForGroup)
      .def("abort", &Group::abort, released)
      .def("_abort", &Group::abort, released)
      .def("shutdown", &Group::shutdown, released)
      .def("_shutdown", &Group::shutdown, released);
}

} // namespace

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, HostTimer)
} // namespace c10d

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The nccl backend of torch.distributed for simulated devices.";
  py::module_::import("torch.distributed");
  keep_forced_unwinding_from_aborting();
  bind_options(module);
  bind_group(module);
  py::class_<OneForAll, c10d::Backend, c10::intrusive_ptr<OneForAll>>(module, "OneForAll")
      .def(py::init<int, int>(), py::arg("rank"), py::arg("size"));
  module.def(
      "set_place", &set_place, py::arg("node"), py::arg("device_numbers"),
      "Say which simulated node this process is on, and the number on it of each visible device.");
  module.def("set_version_text", &set_version_text, py::arg("version"), "The NCCL version that failures name.");
  module.def(
      "close_all", [](double seconds) {
        SimulatedProcessGroup::close_all(Milliseconds(static_cast<int64_t>(seconds * 1000)));
      },
      py::arg("patience"), py::call_guard<py::gil_scoped_release>(),
      "End every group of this process; work under way gets `patience` seconds.");
}
