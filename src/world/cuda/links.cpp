#include "links.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace untax::gpu {
namespace {

// The few functions of NVML that are used, so that neither its header nor the library is needed.
using device = void*;
using state = int;  // 0 is success, and "up"
constexpr unsigned most_links = 18;

struct library {
  std::unique_ptr<void, int (*)(void*)> handle{
      dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL),
      [](void* h) { return h != nullptr ? dlclose(h) : 0; }};

  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return handle ? reinterpret_cast<Function*>(dlsym(handle.get(), name)) : nullptr;
  }
};

}  // namespace

management_facts ask_management(const std::vector<std::string>& buses) {
  management_facts found;
  found.links.assign(buses.size(), -1);
  const library nvml;
  auto* const start = nvml.find<int()>("nvmlInit_v2");
  auto* const stop = nvml.find<int()>("nvmlShutdown");
  auto* const version = nvml.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  auto* const by_bus = nvml.find<int(const char*, device*)>("nvmlDeviceGetHandleByPciBusId_v2");
  auto* const link = nvml.find<int(device, unsigned, state*)>("nvmlDeviceGetNvLinkState");
  if (start == nullptr || stop == nullptr || version == nullptr || by_bus == nullptr ||
      link == nullptr || start() != 0) {
    return found;
  }
  std::array<char, 96> text{};
  if (version(text.data(), text.size()) == 0) found.driver = text.data();
  for (std::size_t i = 0; i < buses.size(); ++i) {
    device which = nullptr;
    if (by_bus(buses[i].c_str(), &which) != 0) continue;
    found.links[i] = 0;
    for (unsigned l = 0; l < most_links; ++l) {
      state up = 0;
      if (link(which, l, &up) == 0 && up == 1) ++found.links[i];
    }
  }
  stop();
  return found;
}

}  // namespace untax::gpu
