#include "ops/all_gather_gemm/maps.hpp"

#include "engines/gpu/comm/packet_panel.hpp"

namespace untax {
namespace {

const std::byte* at(const void* data, std::int64_t element) {
  return static_cast<const std::byte*>(data) + element * 2;
}

/// Rows behind the last ones of an inbox, into which its last tile reaches. They exist, since TMA
/// takes several times as long for a row that does not.
constexpr std::int64_t rows_behind = 256;

/// Describes the shard that this rank sends, and its places in all inboxes.
void describe_tma_tiles(gather_maps& maps, const all_gather_gemm_problem& problem,
                        const all_gather_gemm_protocol& how, const void* a,
                        const symmetric<std::byte>& inbox) {
  const bool rows = how.by_rows();
  const range part = how.shard(how.rank());
  gpu::tma_tiles_at tma_tiles{.first = {a, rows ? part.size : problem.m,
                                        rows ? problem.k : part.size, rows ? problem.k : part.size},
                              .layers = 1,
                              .between = how.set_rows() * problem.k,
                              .tma_tile_rows = static_cast<int>(how.row_chunks(0).step),
                              .tma_tile_columns = static_cast<int>(how.col_chunks(0).step)};
  maps.shard_tma_tiles = tma_tiles;
  tma_tiles.layers = how.sets().sets;
  tma_tiles.first.stride = problem.k;
  for (int peer = 0; peer < how.world(); ++peer) {
    tma_tiles.first.data = at(inbox.at(peer), rows ? part.begin * problem.k : part.begin);
    maps.inbox_tma_tiles.push_back(tma_tiles);
  }
}

}  // namespace

gather_maps maps_of(const all_gather_gemm_problem& problem, const gather_plan& plan,
                    const all_gather_gemm_protocol& how, const gemm_operands& operands,
                    const symmetric<std::byte>& inbox) {
  const auto& [m, n, k, type, gather] = problem;
  const bool rows = how.by_rows();
  gather_maps maps;
  maps.b = {operands.weights, n, k, k};
  maps.c = {operands.c, m, n, n};
  for (const int source : plan.sources) {
    const range part = how.shard(source);
    const std::int64_t columns = rows ? k : part.size;
    // A map of the inbox covers all sets. Rows behind those of a source are read, but left out of
    // C.
    if (source == how.rank() && !how.collected()) {
      maps.own = static_cast<int>(maps.a.size());
      maps.a.push_back({operands.a, rows ? part.size : m, columns, columns});
    } else {
      maps.a.push_back(
          {at(inbox.local(), rows ? 0 : part.begin), how.inbox().rows + rows_behind, columns, k});
    }
    if (!rows) maps.b_or_c.push_back({at(operands.weights, part.begin), n, part.size, k});
    if (plan.segment_rows > 0)
      maps.b_or_c.push_back({at(operands.c, part.begin * n), part.size, n, n});
  }
  if (plan.tma_tiles && !how.shard(how.rank()).empty())
    describe_tma_tiles(maps, problem, how, operands.a, inbox);
  return maps;
}

gather_bytes bytes_of(const gather_plan& plan, const all_gather_gemm_protocol& how) {
  const auto packets = static_cast<std::size_t>(how.sets().sets) *
                       static_cast<std::size_t>(plan.packets ? packet_panel::of(how).in_set : 0);
  const std::int64_t elements = how.inbox().elements() + rows_behind * how.inbox().cols;
  const std::size_t inbox =
      plan.packets ? packets * packet_panel::bytes : static_cast<std::size_t>(elements * 2);
  return {round_up<std::size_t>(inbox, 512), static_cast<std::size_t>(how.outbox().elements() * 2)};
}

void describe_moved(gpu::moved_operands& moved, const gather_plan& plan,
                    const all_gather_gemm_protocol& how) {
  moved.outbox_begin = static_cast<std::int64_t>(bytes_of(plan, how).inbox);
  moved.inbox_stride = how.inbox().cols;
  moved.outbox_stride = how.outbox().cols;
  moved.a_stride = how.by_rows() ? how.inbox().cols : how.shard(how.rank()).size;
}

comm::transfer_lists lists_of(all_gather_gemm_problem problem, const gather_plan& plan) {
  if (plan.protocol.capacity > 0) problem.m = plan.protocol.capacity;
  const all_gather_gemm_protocol how(problem, plan.protocol);
  if (plan.packets || how.pulls() || plan.streams > 0) return {};
  return comm::lower(comm::senders_of(how), 0, how.fans_out());
}

}  // namespace untax
