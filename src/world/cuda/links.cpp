#include "links.hpp"

#include <array>

#include "nvml.hpp"

namespace untax::gpu {
namespace {

using state = int;  // of a link; 1 is "up"
constexpr unsigned most_links = 18;

}  // namespace

management_facts ask_management(const std::vector<std::string>& buses) {
  management_facts facts;
  facts.links.assign(buses.size(), -1);
  const nvml_library nvml;
  auto* const version = nvml.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  auto* const link =
      nvml.find<int(nvml_library::device, unsigned, state*)>("nvmlDeviceGetNvLinkState");
  if (!nvml.works() || version == nullptr || link == nullptr) return facts;
  std::array<char, 96> text{};
  if (version(text.data(), text.size()) == 0) facts.driver = text.data();
  for (std::size_t i = 0; i < buses.size(); ++i) {
    nvml_library::device which = nvml.at(buses[i].c_str());
    if (which == nullptr) continue;
    facts.links[i] = 0;
    for (unsigned l = 0; l < most_links; ++l) {
      state up = 0;
      if (link(which, l, &up) == 0 && up == 1) ++facts.links[i];
    }
  }
  return facts;
}

}  // namespace untax::gpu
