#pragma once

#include <cstdint>

#include <untax/world/world.hpp>

namespace untax {

/// The numbers by which the traces of the ranks of one operator are matched.
struct trace_ids {
  std::uint64_t operator_id = 0;  ///< differs between all operators
  std::uint64_t world_id = 0;     ///< differs between all worlds that exist now
};

/// New numbers for an operator, which one rank makes and sends to the others.
[[nodiscard]] trace_ids new_trace_ids(const world& w);

/// New numbers for an operator that belongs to no world.
[[nodiscard]] trace_ids new_trace_ids();

}  // namespace untax
