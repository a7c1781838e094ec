#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <untax/ops/flash_decode_problem.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

#include "ops/common/memory_need.hpp"

namespace untax {

inline constexpr std::string_view flash_decode_name = "flash_decode";

/// Throws `invalid_argument` unless the sizes of the problem are consistent.
void require_sensible(const flash_decode_problem& problem, int rank);

/// Whether flash_decode has a pattern, on GPUs or on the host.
[[nodiscard]] bool has_pattern(pattern how, bool on_device) noexcept;

struct planned_flash_decode {
  flash_decode_plan plan;
  std::string explanation;
};

/// Fills in the options that are left open. Throws `invalid_argument` for impossible options.
[[nodiscard]] planned_flash_decode make_plan(const world& w, const flash_decode_problem& problem,
                                             const flash_decode_options& options);

/// The parts of a plan in which all ranks have to agree: see plan_agreement.hpp.
[[nodiscard]] std::string fields_of(const flash_decode_plan& plan);

/// "batch 1, heads 32 / 8 of 128, 4096 keys, pages of 16, bf16".
[[nodiscard]] std::string describe(const flash_decode_problem& problem);

/// Rows and columns of keys, and of values, at a rank.
[[nodiscard]] extent cache_extent(const flash_decode_problem& problem) noexcept;
/// Entries of the page table for a sequence; 0 where there are no pages.
[[nodiscard]] std::int64_t pages_of_sequence(const flash_decode_problem& problem) noexcept;
/// The factor by which logits are scaled.
[[nodiscard]] float scale_of(const flash_decode_problem& problem) noexcept;
/// A rank's memory for keys and values, which count as weights, for queries and for the result.
[[nodiscard]] memory_need operands_need(const flash_decode_problem& problem) noexcept;
/// About the number of splits that an operator on the host chooses.
[[nodiscard]] int usual_splits(const flash_decode_problem& problem, int world) noexcept;
/// An upper bound on the bytes of symmetric heap that an operator takes from a rank.
[[nodiscard]] std::size_t heap_for(const flash_decode_problem& problem, int world, int splits);

}  // namespace untax
