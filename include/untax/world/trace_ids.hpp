#pragma once

#include <cstdint>

#include <untax/world/world.hpp>

namespace untax {

/// By what the parts of a trace that ranks record find each other.
struct trace_ids {
  std::uint64_t operator_id = 0;  ///< of no other operator
  std::uint64_t world_id = 0;     ///< of no other world that lives now
};

/// What one rank makes up for an operator, and hands to the others.
[[nodiscard]] trace_ids new_trace_ids(const world& w);

/// The same for what takes part in no world.
[[nodiscard]] trace_ids new_trace_ids();

}  // namespace untax
