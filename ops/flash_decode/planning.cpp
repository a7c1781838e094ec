#include "ops/flash_decode/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <untax/core/memory_kind.hpp>
#include <untax/tile/step.hpp>

#include "engines/gpu/attention/shape.hpp"
#include "ops/attention_common/refusal.hpp"

namespace untax {
namespace {

constexpr std::int64_t most_items = std::int64_t{1} << 20;
/// A shorter split costs more than it saves.
constexpr std::int64_t least_keys_of_split = 64;

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void require_pattern(pattern how, bool on_device, const attention_refusal& refuse) {
  if (has_pattern(how, on_device)) return;
  refuse(
      fmt::format("has no pattern {} {}; it has bulk_library, bulk_synchronous, "
                  "producer_consumer, fused_sequential{}",
                  name_of(how), on_device ? "on GPUs" : "on the host",
                  on_device ? "" : " and fused_specialized"));
}

}  // namespace

bool has_pattern(pattern how, bool on_device) noexcept {
  return on_host(how) && !(on_device && how == pattern::fused_specialized);
}

void require_sensible(const flash_decode_problem& p, int rank) {
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  const attention_refusal refuse{flash_decode_name, rank};
  refuse.unless_between("batch", p.batch, 1, most_items);
  refuse.unless_between("heads", p.heads, 1, most_items);
  refuse.unless_between("kv_heads", p.kv_heads, 1, most_items);
  refuse.unless_between("head_dim", p.head_dim, 1, 4096);
  refuse.unless_between("keys", p.keys, 0, any);
  refuse.unless_between("page_size", p.page_size, 0, any);
  refuse.unless_between("pages", p.pages, 0, any);
  refuse.unless_between("batch * kv_heads", p.batch * p.kv_heads, 1, most_items);
  if (p.heads % p.kv_heads != 0) {
    refuse(
        fmt::format("heads is {} and kv_heads {}; each head of the keys has to serve as many "
                    "heads of the queries, so one has to be a multiple of the other",
                    p.heads, p.kv_heads));
  }
  if (p.page_size > 0 && p.pages == 0 && p.keys > 0)
    refuse("pages is 0; a cache with pages needs 1 or more");
  if (p.partials == dtype::f16)
    refuse(
        "partials is fp16, whose range is too small for large logits; it has to be fp32 or bf16");
  if (!std::isfinite(p.scale) || p.scale < 0)
    refuse(fmt::format("scale is {}; it has to be positive, or 0 for 1 / sqrt(head_dim)", p.scale));
  if (!std::isfinite(p.logit_cap) || p.logit_cap < 0)
    refuse(fmt::format("logit_cap is {}; it has to be positive, or 0 for none", p.logit_cap));
}

planned_flash_decode make_plan(const world& w, const flash_decode_problem& problem,
                               const flash_decode_options& options) {
  const attention_refusal refuse{flash_decode_name, w.rank()};
  const bool on_device = w.memory() == memory_kind::cuda;
  refuse.unless_between("option workers", options.workers, 0,
                        on_device ? 4096 : most_attention_workers);
  refuse.unless_between("option senders", options.senders, 0,
                        on_device ? 0 : most_attention_workers);
  if (on_device && options.splits > 0 && w.size() > 1) {
    refuse(
        fmt::format("option splits is {}; on GPUs parts of a sequence's keys are combined in a "
                    "world of one rank alone, and this one has {}",
                    options.splits, w.size()));
  }
  refuse.unless_between("option splits", options.splits, 0,
                        on_device ? gpu::most_attention_ranks : 1024);
  require_pattern(options.how, on_device, refuse);

  planned_flash_decode result;
  flash_decode_plan& plan = result.plan;
  plan.world = w.size();
  plan.rank = w.rank();
  plan.how = options.how;
  std::string why = "as asked";
  if (options.how == pattern::automatic) {
    plan.how = pattern::fused_sequential;
    why = "chosen because a worker that has computed a partial result is idle, so it can send it";
  }
  if (on_device) {
    plan.workers = options.workers;
    plan.splits = options.splits;
    result.explanation = fmt::format(
        "{}: {} ({}), {}, {}, partial results {}", flash_decode_name, name_of(plan.how), why,
        plan.workers == 0 ? "a block for each multiprocessor"
                          : fmt::format("{} blocks", plan.workers),
        plan.splits == 0
            ? "splits so that all have the same number of keys"
            : fmt::format("{} of a sequence, whatever the others are",
                          plan.splits == 1 ? "1 split" : fmt::format("{} splits", plan.splits)),
        name_of(problem.partials));
    return result;
  }
  plan.workers = options.workers > 0 ? options.workers
                                     : std::clamp(cores() / w.size(), 1, most_attention_workers);
  plan.senders = options.senders > 0 ? options.senders : 1;
  plan.splits = options.splits;
  if (plan.splits == 0) {
    const std::int64_t items = problem.batch * problem.kv_heads;
    const std::int64_t wanted = ceil_div<std::int64_t>(plan.workers, items);
    plan.splits =
        static_cast<int>(std::clamp<std::int64_t>(problem.keys / least_keys_of_split, 1, wanted));
  }
  result.explanation = fmt::format("{}: {} ({}), {} workers, {} {} of a sequence",
                                   flash_decode_name, name_of(plan.how), why, plan.workers,
                                   plan.splits, plan.splits == 1 ? "split" : "splits");
  return result;
}

std::string fields_of(const flash_decode_plan& plan) {
  // All fields but the rank: a new one cannot be left out.
  const auto& [world, rank, how, workers, senders, splits] = plan;
  static_cast<void>(rank);
  return fmt::format("ranks {}, pattern {}, workers {}, senders {}, splits {}", world, name_of(how),
                     workers, senders, splits);
}

std::string describe(const flash_decode_problem& p) {
  std::string text = fmt::format("batch {}, heads {} / {} of {}, {} keys", p.batch, p.heads,
                                 p.kv_heads, p.head_dim, p.keys);
  if (p.page_size > 0) text += fmt::format(", {} pages of {}", p.pages, p.page_size);
  text += fmt::format(", {}, partials {}", name_of(p.type), name_of(p.partials));
  if (p.scale > 0) text += fmt::format(", scale {}", p.scale);
  if (p.logit_cap > 0) text += fmt::format(", logit cap {}", p.logit_cap);
  return text;
}

extent cache_extent(const flash_decode_problem& p) noexcept {
  const std::int64_t rows = p.page_size > 0 ? p.pages * p.page_size : p.batch * p.keys;
  return {rows, p.kv_heads * p.head_dim};
}

std::int64_t pages_of_sequence(const flash_decode_problem& p) noexcept {
  return p.page_size > 0 ? ceil_div(p.keys, p.page_size) : 0;
}

float scale_of(const flash_decode_problem& p) noexcept {
  return p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<float>(p.head_dim));
}

std::size_t heap_for(const flash_decode_problem& p, int world, int splits) {
  const double parts = 2.0 * world + splits;
  const auto batch = static_cast<double>(p.batch);
  const double row = static_cast<double>(p.head_dim + attention_statistics) * sizeof(float);
  const double rooms = batch * static_cast<double>(p.heads) * row * parts;
  const double counters = batch * static_cast<double>(p.kv_heads) * parts + 4096;
  return whole_bytes(rooms + counters * sizeof(std::uint64_t) + 0x1p20);
}

int usual_splits(const flash_decode_problem& p, int world) noexcept {
  const double items = static_cast<double>(p.batch) * static_cast<double>(p.kv_heads);
  return 1 + static_cast<int>(cores() / (items * world));
}

memory_need operands_need(const flash_decode_problem& p) noexcept {
  const auto size = static_cast<double>(size_of(p.type));
  const auto width = static_cast<double>(p.head_dim);
  const double rows = p.page_size > 0
                          ? static_cast<double>(p.pages) * static_cast<double>(p.page_size)
                          : static_cast<double>(p.batch) * static_cast<double>(p.keys);
  memory_need need;
  need.weights = 2 * size * rows * static_cast<double>(p.kv_heads) * width;
  need.activations = 2 * size * static_cast<double>(p.batch) * static_cast<double>(p.heads) * width;
  return need;
}

}  // namespace untax
