#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <untax/core/memory_kind.hpp>
#include <untax/ops/collective_problems.hpp>

namespace untax {

/// The memory of callers that peers access if data goes directly.
enum class touched : std::uint8_t { result, input, both };

/// The properties of a collective that its split into chunks depends on.
struct collective_need {
  std::string_view name;
  dtype type = dtype::f32;
  std::int64_t largest = 0;      ///< elements of the largest part that one rank sends another
  std::int64_t largest_one = 0;  ///< `largest` if the collective is carried out in one phase
  std::int64_t total = 0;        ///< elements of the result
  /// Whether there may be two phases; `largest` is then that of two.
  bool can_have_two_phases = false;
  int packet_phases = 1;  ///< the most phases that packets can have
  touched by_peers = touched::result;
};

struct planned_collective {
  collective_plan plan;
  std::string explanation;
};

/// Fills in the options that are left open, for a world with heaps in `memory`, `sharing` ranks of
/// which share a GPU. Throws `invalid_argument` for options that are not possible.
[[nodiscard]] planned_collective plan_collective(int world, int rank, const collective_need& need,
                                                 const collective_options& options,
                                                 memory_kind memory = memory_kind::host,
                                                 int sharing = 1);

/// "4 rooms in turn", "direct, without rooms".
[[nodiscard]] std::string way_of(const collective_plan& plan);

/// The parts of a plan in which all ranks have to agree: see plan_agreement.hpp.
[[nodiscard]] std::string fields_of(const collective_plan& plan);

/// Bytes of symmetric heap that a planned collective takes from each rank, at most.
[[nodiscard]] std::size_t heap_for(const collective_plan& plan, dtype type) noexcept;

/// Throws `invalid_argument` unless 0 <= count < 2^48.
void require_count(std::string_view name, int rank, std::string_view what, std::int64_t count);

/// The best options on GPUs: fills in all that were left open, by the bytes to send and by the
/// number of ranks, `sharing` of which share a GPU. All ranks get the same options.
[[nodiscard]] collective_options device_choice(int world, const collective_need& need,
                                               const collective_options& asked, int sharing);

}  // namespace untax
