#include "ops/common/memory_need.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace untax {

memory_need& memory_need::operator+=(const memory_need& other) noexcept {
  weights += other.weights;
  activations += other.activations;
  heaps += other.heaps;
  work_space += other.work_space;
  heap_of_rank += other.heap_of_rank;
  return *this;
}

std::string memory_need::text() const {
  std::array<std::pair<double, const char*>, 4> parts = {{{weights, "weights"},
                                                          {activations, "activations"},
                                                          {heaps, "symmetric heaps"},
                                                          {work_space, "work space"}}};
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<double, const char*>::first);
  std::string text;
  for (const auto& [bytes, name] : parts) {
    if (bytes < 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, memory_text(bytes));
  }
  return text;
}

std::size_t whole_bytes(double bytes) noexcept {
  constexpr double most = 0x1p56;
  return static_cast<std::size_t>(bytes > 0 ? std::min(bytes, most) : 0.0);
}

std::string memory_text(double bytes) {
  constexpr std::array<const char*, 6> units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  double value = bytes / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return value < 1e6 ? fmt::format("{:.4g} {}", value, units[unit])
                     : fmt::format("{:.2e} {}", value, units[unit]);
}

}  // namespace untax
