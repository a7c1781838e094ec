#include "ops/all_reduce_norm/planning.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/memory_need.hpp"
#include "ops/common/summing_layout.hpp"

namespace untax {
namespace {

constexpr std::int64_t two_phase_bytes = 64 << 10;
/// The bytes of a tile: enough that a signal costs little beside it, and few enough for the L2
/// cache.
constexpr std::int64_t tile_bytes = 128 << 10;
constexpr std::size_t alignment = 64;

std::int64_t row_bytes(const all_reduce_norm_problem& p) {
  return p.hidden * static_cast<std::int64_t>(size_of(p.type));
}

/// Rows that are sent as one tile.
std::int64_t rows_of_tile(const all_reduce_norm_problem& p, std::int64_t rows, int workers) {
  const std::int64_t share = ceil_div<std::int64_t>(std::max<std::int64_t>(rows, 1), workers);
  return std::clamp<std::int64_t>(tile_bytes / row_bytes(p), 1, share);
}

}  // namespace

int phases_for(const all_reduce_norm_problem& problem, int world) noexcept {
  const bool large = problem.tokens * row_bytes(problem) >= two_phase_bytes;
  return world > 1 && large && problem.tokens >= world ? 2 : 1;
}

norm_room room_of(const all_reduce_norm_problem& p) noexcept {
  const auto rows = static_cast<std::size_t>(p.tokens);
  norm_room room;
  room.out = round_up(rows * static_cast<std::size_t>(row_bytes(p)), alignment);
  const std::size_t out_bytes = rows * static_cast<std::size_t>(p.hidden) * normed_size(p);
  room.scales = round_up(room.out + out_bytes, alignment);
  const bool has_scales = p.output == norm_output::e4m3_per_token;
  room.bytes = room.scales + (has_scales ? rows * sizeof(float) : 0);
  return room;
}

namespace {

/// With more than two ranks the second phase saves bytes on the links: with 4 H200 one phase is
/// quicker at 1 MB, two at 2 MB. With two ranks it saves none, but a row is added and normalised
/// once instead of twice. From `normed_bytes` on that saves more time than the second hop takes:
/// with 2 H100 both are equal at 4.2 MB, and two phases are 15 % quicker at 8.4 MB.
int device_phases_for(const all_reduce_norm_problem& p, int world) {
  constexpr std::int64_t saved_bytes = 3 << 20;
  constexpr std::int64_t normed_bytes = 5 << 20;
  const std::int64_t bytes = p.tokens * row_bytes(p);
  const bool large = world > 1 && (bytes * (world - 2) >= saved_bytes || bytes >= normed_bytes);
  return large && p.tokens >= world ? 2 : 1;
}

}  // namespace

made_plan plan_norm_on_gpus(int world, int rank, const all_reduce_norm_problem& problem,
                            const operator_options& options) {
  constexpr auto name = all_reduce_norm_name;
  constexpr std::int64_t multiple = 8;
  const auto refuse = [&](errc code, const std::string& text) {
    throw error(code, fmt::format("rank {}: {}: {}", rank, name, text));
  };
  if (problem.type == dtype::f32)
    refuse(errc::invalid_argument, "elements are fp32; on GPUs they have to be bf16 or fp16");
  if (problem.hidden % multiple != 0)
    refuse(errc::invalid_argument,
           fmt::format("hidden is {}; on GPUs it has to be a multiple of {}: {} would do",
                       problem.hidden, multiple, round_up(problem.hidden, multiple)));
  if (options.how != pattern::automatic && options.how != pattern::fused_sequential)
    refuse(errc::unsupported,
           fmt::format("GPUs have no {}; they have fused_sequential", name_of(options.how)));
  made_plan planned;
  planned.plan.world = world;
  planned.plan.rank = rank;
  planned.plan.how = pattern::fused_sequential;
  planned.plan.phases = options.phases > 0 ? options.phases : device_phases_for(problem, world);
  planned.explanation = fmt::format(
      "{}: fused_sequential, {}", name,
      planned.plan.phases == 1 ? "1 phase: everybody adds everything"
                               : "2 phases: owners add rows, normalise them and pass them on");
  return planned;
}

made_plan plan_norm(const world& w, const all_reduce_norm_problem& problem,
                    const operator_options& options) {
  constexpr auto name = all_reduce_norm_name;
  const auto refuse = [&](errc code, const std::string& text) {
    throw error(code, fmt::format("rank {}: {}: {}", w.rank(), name, text));
  };
  require_size(name, w.rank(), "tokens", problem.tokens);
  require_size(name, w.rank(), "hidden", problem.hidden);
  if (problem.hidden > most_hidden) {
    refuse(errc::invalid_argument,
           fmt::format("hidden is {}; it can be {} at most", problem.hidden, most_hidden));
  }
  if (!(problem.epsilon >= 0)) {
    refuse(errc::invalid_argument,
           fmt::format("epsilon is {}; it cannot be negative", problem.epsilon));
  }
  if (options.how != pattern::automatic && !norm_has_pattern(options.how)) {
    refuse(errc::invalid_argument,
           fmt::format("has no pattern {}; it has bulk_synchronous, fused_sequential and "
                       "fused_specialized",
                       name_of(options.how)));
  }
  require_phases(name, w.rank(), options.phases);
  const int phases = options.phases > 0 ? options.phases : phases_for(problem, w.size());
  if (w.memory() == memory_kind::cuda)
    return plan_norm_on_gpus(w.size(), w.rank(), problem, options);
  const std::int64_t rows =
      phases == 1 ? problem.tokens : sharding{problem.tokens, w.size()}.full();
  operator_options whole_rows = options;
  whole_rows.tile_n = problem.hidden;
  auto planned = make_plan(w, name, {rows, problem.hidden, 1, problem.type}, whole_rows);
  set_phases(planned.plan, phases);
  if (options.tile_m == 0) planned.plan.tile_m = rows_of_tile(problem, rows, planned.plan.workers);
  planned.explanation =
      fmt::format("{}: {}, {} workers{}, {} {}, tiles of {} rows", name, name_of(planned.plan.how),
                  planned.plan.workers,
                  planned.plan.how == pattern::fused_sequential
                      ? ""
                      : fmt::format(" and {} senders", planned.plan.senders),
                  phases,
                  phases == 1 ? "phase: everybody adds everything"
                              : "phases: owners add rows, normalise them and pass them on",
                  planned.plan.tile_m);
  return planned;
}

std::size_t heap_for(const all_reduce_norm_problem& p, int world, int phases) noexcept {
  const int taken = phases > 0 ? phases : phases_for(p, world);
  const double rows = static_cast<double>(p.tokens + world) * (taken == 1 ? 2.0 * world : 1.0);
  return whole_bytes(rows * static_cast<double>(row_bytes(p)) +
                     static_cast<double>(room_of(p).bytes) + 0x1p20);
}

}  // namespace untax
