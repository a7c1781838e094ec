#include "ops/merge_partial_attention/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/step.hpp>

#include "ops/attention_common/refusal.hpp"

namespace untax {
namespace {

constexpr std::int64_t most_rows = std::int64_t{1} << 20;

}  // namespace

void require_sensible(const merge_partial_attention_problem& p, int rank) {
  const attention_refusal refuse{merge_partial_attention_name, rank};
  refuse.unless_between("tokens", p.tokens, 1, most_rows);
  refuse.unless_between("heads", p.heads, 1, most_rows);
  refuse.unless_between("tokens * heads", p.tokens * p.heads, 1, most_rows);
  refuse.unless_between("head_dim", p.head_dim, 1, 4096);
}

planned_merge plan_merge_on_gpus(int world, int rank,
                                 const merge_partial_attention_problem& problem,
                                 const merge_partial_attention_options& options) {
  const attention_refusal refuse{merge_partial_attention_name, rank};
  const std::int64_t multiple = chunk_elements(problem.type);
  if (problem.head_dim % multiple != 0) {
    refuse(fmt::format(
        "head_dim is {}; on GPUs it has to be a multiple of {} in {}, so that rows are "
        "multiples of 16 bytes: {} would do",
        problem.head_dim, multiple, name_of(problem.type), round_up(problem.head_dim, multiple)));
  }
  if (options.how != pattern::automatic && options.how != pattern::fused_sequential) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: GPUs have no {}; they have fused_sequential", rank,
                            merge_partial_attention_name, name_of(options.how)));
  }
  planned_merge result;
  result.plan = {world, rank, pattern::fused_sequential, options.workers, 0};
  result.explanation = fmt::format(
      "{}: fused_sequential, one kernel, {} blocks{}", merge_partial_attention_name,
      options.workers > 0 ? fmt::to_string(options.workers) : "as many as work asks for",
      options.varying_tokens ? ", any number of tokens" : "");
  return result;
}

planned_merge make_plan(const world& w, const merge_partial_attention_problem& problem,
                        const merge_partial_attention_options& options) {
  const attention_refusal refuse{merge_partial_attention_name, w.rank()};
  refuse.unless_between("option workers", options.workers, 0, most_attention_workers);
  refuse.unless_between("option senders", options.senders, 0, most_attention_workers);
  if (w.memory() == memory_kind::cuda)
    return plan_merge_on_gpus(w.size(), w.rank(), problem, options);
  planned_merge result;
  merge_partial_attention_plan& plan = result.plan;
  plan.world = w.size();
  plan.rank = w.rank();
  plan.how = options.how;
  std::string why = "as asked";
  if (options.how == pattern::automatic) {
    plan.how = pattern::fused_sequential;
    why = "chosen because a worker that has sent its tokens is idle, so it can merge";
  }
  if (std::ranges::find(merge_patterns, plan.how) == merge_patterns.end()) {
    refuse(
        fmt::format("has no pattern {}; it has bulk_synchronous, fused_sequential and "
                    "fused_specialized",
                    name_of(plan.how)));
  }
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto tokens =
      static_cast<int>(std::min<std::int64_t>(problem.tokens, most_attention_workers));
  plan.workers = options.workers > 0 ? options.workers : std::clamp(cores / w.size(), 1, tokens);
  plan.senders = options.senders > 0 ? options.senders : 1;
  result.explanation =
      fmt::format("{}: {} ({}), {} workers{}", merge_partial_attention_name, name_of(plan.how), why,
                  plan.workers, options.varying_tokens ? ", any number of tokens" : "");
  return result;
}

std::string fields_of(const merge_partial_attention_plan& plan) {
  // All fields but the rank: a new one cannot be left out.
  const auto& [world, rank, how, workers, senders] = plan;
  static_cast<void>(rank);
  return fmt::format("ranks {}, pattern {}, workers {}, senders {}", world, name_of(how), workers,
                     senders);
}

std::string describe(const merge_partial_attention_problem& p) {
  return fmt::format("{} tokens, {} heads of {}, {}, {}{}", p.tokens, p.heads, p.head_dim,
                     name_of(p.type),
                     p.get == merged_heads::all ? "all heads to all" : "to each its heads",
                     p.log2 ? ", logarithms to base 2" : "");
}

std::size_t heap_for(const merge_partial_attention_problem& p, int world) {
  // Two sets of rooms of all ranks, and merged results; twice that if the number of tokens varies.
  const double copies = 2 * (2.0 * world + 1);
  const double rows = static_cast<double>(p.tokens) * static_cast<double>(p.heads + world);
  const double row = static_cast<double>(p.head_dim + attention_statistics) * sizeof(float);
  const double counters = 4.0 * world * static_cast<double>(p.tokens) + 4096;
  return whole_bytes(copies * rows * row + counters * sizeof(std::uint64_t) + 0x1p20);
}

}  // namespace untax
