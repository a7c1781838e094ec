#pragma once

#include <algorithm>
#include <cstdint>

#include "match.hpp"

namespace untax {

/// The parts of a wait, in nanoseconds: until the peer signalled, and from then on.
struct wait_parts {
  std::uint64_t late = 0;
  std::uint64_t in_flight = 0;
  bool matched = false;
};

[[nodiscard]] inline wait_parts parts_of(const signal_index& signals, const traced_operator& op,
                                         const trace_span& wait) {
  const auto result = signals.signal_of(op, wait);
  if (!result) return {wait.end - wait.begin, 0, false};
  const std::uint64_t signalled = std::clamp(signals.at(*result).begin, wait.begin, wait.end);
  return {signalled - wait.begin, wait.end - signalled, true};
}

}  // namespace untax
