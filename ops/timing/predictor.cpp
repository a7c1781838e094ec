#include "ops/timing/predictor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/tile/shard.hpp>

#include "ops/collectives_common/registry.hpp"

namespace untax {
namespace {

/// The columns that one rank multiplies.
double local_columns(const timed_case& c) {
  if (!c.columns_sharded()) return static_cast<double>(c.n);
  return static_cast<double>(sharding{c.n, c.ranks, shard_granularity}.full());
}
/// The part of the reduction dimension that one rank multiplies.
double local_depth(const timed_case& c) {
  if (!c.sums()) return static_cast<double>(c.k);
  return static_cast<double>(sharding{c.k, c.ranks, shard_granularity}.full());
}
/// The collective of a case: the case itself, or the library's collective for a GEMM operator.
struct collective_part {
  std::string name;
  ring_traffic ring;
};
collective_part collective_of(const timed_case& c) {
  const char* const name = !c.sums()           ? "all_gather"
                           : c.entry()->phases ? "all_reduce"
                                               : "reduce_scatter";
  const collective_entry& entry = collective_named(c.is_gemm() ? name : c.op);
  double bytes = c.bytes;
  if (c.sums()) bytes = timed_element_bytes * static_cast<double>(c.m * c.n);
  if (c.gathers()) bytes = timed_element_bytes * static_cast<double>(c.m * c.k);
  if (c.columns_sharded()) bytes = timed_element_bytes * static_cast<double>(c.m * c.n);
  return {entry.name, entry.ring(bytes, c.ranks)};
}

}  // namespace

std::string timed_case::text() const {
  if (heads > 0)
    return fmt::format("{} batch {}, heads {} / {} of {}, {} keys, {}", op, m, heads, kv_heads,
                       head_dim, keys, by);
  if (bytes > 0) return fmt::format("{} {:.0f} bytes, {}", op, bytes, by);
  return fmt::format("{} {} x {} x {}{}, {}", op, m, n, k,
                     gathers() ? fmt::format(", {}", name_of(gather)) : "", by);
}

pattern pattern_of(const std::string& name) {
  for (const pattern p : all_patterns) {
    if (name_of(p) == name) return p;
  }
  throw error(errc::invalid_argument, fmt::format("there is no pattern \"{}\"", name));
}

predictor::predictor(timing::machine m, calibration known, timing::simulation_options options)
    : machine_(std::move(m)), known_(std::move(known)), options_(options) {
  if (machine_.cores) {
    throw error(errc::invalid_argument,
                fmt::format("{} describes cores of a host, and only plans of GPUs are predicted; "
                            "`untax taxes --backend host` measures cores",
                            machine_.name));
  }
}

int predictor::processors() const { return static_cast<int>(numbers().processors); }

calibration_key predictor::key_of(const timed_case& c) {
  if (c.by == "GEMM alone" || c.by == "cuBLASLt alone") {
    return {c.by, static_cast<double>(c.m), local_columns(c), local_depth(c)};
  }
  if (c.by == "NCCL" || c.by == "NCCL alone") {
    const collective_part part = collective_of(c);
    return {"NCCL " + part.name, part.ring.sent};
  }
  if (c.is_gemm()) {
    const std::string axis = c.gathers() ? fmt::format(" {}", name_of(c.gather)) : std::string();
    return {fmt::format("{}{} {}", c.op, axis, c.by), static_cast<double>(c.m), local_columns(c),
            local_depth(c)};
  }
  if (c.is_attention()) {
    const double cache = 2 * timed_element_bytes *
                         static_cast<double>(c.m * c.kv_heads * c.head_dim) *
                         static_cast<double>(c.keys);
    return {c.op + " " + c.by, cache, static_cast<double>(c.m * c.heads * c.head_dim)};
  }
  return {c.op + " " + c.by, collective_of(c).ring.sent};
}

predicted predictor::predict(const timed_case& c) {
  predicted result = simulate(c);
  result.seconds = result.simulated * known_.ratio(key_of(c));
  return result;
}

predicted predictor::simulate(const timed_case& c) {
  const auto alone = [](double seconds) { return predicted{seconds, seconds, {}}; };
  if (c.by == "GEMM alone" || c.by == "cuBLASLt alone") {
    const gpu::gemm_shape shape{c.m, static_cast<std::int64_t>(local_columns(c)),
                                static_cast<std::int64_t>(local_depth(c))};
    const auto& best = plans(shape, processors()).front();
    return alone(seconds_of(best, shape, {}));
  }
  if (c.by == "NCCL" || c.by == "NCCL alone") {
    const ring_traffic ring = collective_of(c).ring;
    return alone(numbers().library_start + (ring.hops - 1) * numbers().library_hop +
                 ring.sent / numbers().link_rate);
  }
  if (c.gathers()) return simulate_gather(*this, c);
  if (c.columns_sharded()) return simulate_scatter(*this, c);
  if (c.sums()) return simulate_sums(*this, c);
  if (c.is_attention()) return simulate_attention(*this, c);
  return simulate_collective(*this, c);
}

double predictor::gemm_alone(const gpu::gemm_shape& shape, bool by_library) {
  return predict({.op = "gemm",
                  .by = by_library ? "cuBLASLt alone" : "GEMM alone",
                  .m = shape.m,
                  .n = shape.n,
                  .k = shape.k})
      .seconds;
}

double predictor::seconds_of(const gpu::gemm_plan& plan, const gpu::gemm_shape& shape,
                             const gpu::gemm_shape& like) {
  const double bytes =
      timed_element_bytes *
      static_cast<double>(shape.m * shape.k + shape.n * shape.k + shape.m * shape.n);
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  const double raw = std::max({plan.cycles / numbers().hertz, bytes / numbers().memory_rate,
                               flops / numbers().flops * 0.5});
  if (like.m == 0) return raw;
  return raw * known_.ratio(key_of(
                   {.op = "gemm", .by = "GEMM alone", .m = like.m, .n = like.n, .k = like.k}));
}

double predictor::seconds_beside(const gpu::gemm_plan& plan, const gpu::gemm_shape& shape,
                                 const gpu::gemm_shape& like, int beside) {
  for (const gpu::gemm_plan& candidate : plans(shape, processors() - beside)) {
    if (candidate.config.block_n == plan.config.block_n &&
        candidate.config.swap_ab == plan.config.swap_ab &&
        candidate.config.cluster == plan.config.cluster &&
        candidate.config.cluster_split_k == plan.config.cluster_split_k &&
        candidate.schedule.clusters == plan.schedule.clusters &&
        candidate.schedule.stream_k_tiles == plan.schedule.stream_k_tiles)
      return seconds_of(candidate, shape, like);
  }
  return seconds_of(plan, shape, like);
}

predicted predictor::run(const timing::workload& work) const {
  predicted result;
  result.detail = timing::simulate(work, machine_, options_);
  result.seconds = result.simulated = result.detail.seconds;
  return result;
}

const std::vector<gpu::gemm_plan>& predictor::plans(const gpu::gemm_shape& shape, int processors) {
  auto& cached = plans_[{shape.m, shape.n, shape.k, processors}];
  if (cached.empty()) cached = gpu::gemm_plans(shape, processors);
  return cached;
}

double predictor::library_collective(const std::string& name, int ranks, double bytes) {
  if (ranks == 1) return 0;
  return predict({.op = name, .by = "NCCL", .ranks = ranks, .bytes = bytes}).seconds;
}

}  // namespace untax
