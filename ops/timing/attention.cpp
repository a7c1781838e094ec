#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/tile/order.hpp>

#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

/// Workers that the simulation has for attention at each rank: groups of the blocks of a GPU.
constexpr int groups = 16;
/// How often a group sends finished items in a run.
constexpr int times = 8;
constexpr double statistics_bytes = 16;

double cache_bytes(const timed_case& c) {
  return 4.0 * static_cast<double>(c.m * c.kv_heads * c.head_dim) * static_cast<double>(c.keys);
}
/// Bytes of a rank's partial result, in fp32, which each other rank gets.
double partial_bytes(const timed_case& c) {
  return static_cast<double>(c.m * c.heads) *
         (4.0 * static_cast<double>(c.head_dim) + statistics_bytes);
}

/// Every group attends, sends the items that it has finished to all peers, and combines those that
/// have arrived.
timing::workload whole_run(const predictor& p, const timed_case& c, double local, bool fused,
                           double begin) {
  timing::workload work(c.ranks);
  const double bytes = partial_bytes(c) / groups;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const int kernel = work.add_kernel(rank, 0, "attend", begin);
    for (int group = 0; group < groups; ++group) {
      work.add_worker(kernel);
      const int parts = fused ? times : 1;
      for (int i = 0; i < parts; ++i) {
        work.act({.busy = local / parts});
        for (int hop = 1; hop < c.ranks; ++hop) {
          const int peer = receiver_at_hop(rank, hop, c.ranks);
          work.raise({peer, (rank * groups + group) * times + i, 1});
          work.act({.bytes = bytes / parts,
                    .from = rank,
                    .to = peer,
                    .way = signal_way::inside,
                    .detached = true});
        }
      }
      for (int hop = 1; hop < c.ranks; ++hop) {
        for (int i = 0; i < parts; ++i)
          work.wait({rank, (source_at_hop(rank, hop, c.ranks) * groups + group) * times + i, 1});
      }
      work.act({.busy = bytes * (c.ranks + 1) * groups / p.numbers().memory_rate});
    }
  }
  return work;
}

}  // namespace

predicted simulate_attention(predictor& p, const timed_case& c) {
  const timing::machine_numbers& n = p.numbers();
  if (c.by == "local") {
    const double seconds = n.start + cache_bytes(c) / n.memory_rate;
    return {seconds, seconds, {}};
  }
  timed_case alone = c;
  alone.by = "local";
  const double local = p.predict(alone).seconds;
  const double bytes = partial_bytes(c);
  const double combine = bytes * (c.ranks + 1) / n.memory_rate;
  predicted result;
  if (c.by.starts_with("bulk_library")) {
    const double between = c.by.ends_with("eager") ? n.launch_eager : n.launch_graph;
    result.simulated = local + 2 * between + combine +
                       p.library_collective("all_gather", c.ranks, bytes * c.ranks);
  } else if (c.by == "bulk_synchronous") {
    result = p.run(whole_run(p, c, local, false, 0));
    result.simulated += 2 * n.launch_graph + n.store + n.release;
  } else if (c.by == "producer_consumer") {
    result = p.run(whole_run(p, c, local, false, 0));
    result.simulated += n.launch_graph;
  } else if (c.by == "fused_sequential") {
    result = p.run(whole_run(p, c, local, true, 0));
  } else {
    throw error(errc::unsupported, fmt::format("flash_decode has no pattern {} on GPUs", c.by));
  }
  result.seconds = result.simulated;
  return result;
}

}  // namespace untax
