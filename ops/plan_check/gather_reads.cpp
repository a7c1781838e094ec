#include <algorithm>

#include "ops/plan_check/gather.hpp"

namespace untax::plan_check {

void gather_reads::each(const gpu::cta_read& of, std::uint64_t epoch,
                        const std::function<void(const factors&)>& visit) {
  const int set = m_.how.sets().set_of(epoch);
  for (int k_block = of.begin; k_block < of.end;) {
    const auto [found, is_new] =
        known_.try_emplace({of.a.begin, of.a_read.begin, k_block, of.end, set});
    if (is_new) found->second = part_of(of, k_block, set);
    factors f = found->second.first;
    f.cols = std::clamp<std::int64_t>(f.cols - of.b.begin, 0, of.b.count);
    f.b.row += of.b.begin;
    f.c.col += of.b.begin;
    visit(f);
    k_block = found->second.second;
  }
}

gather_reads::part gather_reads::part_of(const gpu::cta_read& of, int k_block, int set) const {
  const gather_segments& in = m_.segments;
  const gather_maps& maps = m_.maps;
  const auto at =
      in.part_of(of.a.begin, k_block, m_.plan.gemm.schedule.k_blocks, set, m_.shard.set_rows);
  const int end = std::min(at.end, of.end);
  const int next = std::max(
      k_block + 1, k_block + round_up(end - k_block, k_blocks_per_stage(m_.plan.gemm.config)));
  factors f;
  f.waits = std::make_shared<std::vector<factors::ready>>();
  const auto segment = static_cast<std::size_t>(at.segment);
  const bool by_k_blocks = in.rows == 0 && !m_.arrivals.by_rows;
  if (at.segment < 0 || segment >= maps.a.size()) return {f, next};
  if ((by_k_blocks || in.rows > 0) && segment >= maps.b_or_c.size()) return {f, next};
  const gpu::matrix_at& a = maps.a[segment];
  const gpu::matrix_at& b = by_k_blocks ? maps.b_or_c[segment] : maps.b;
  const gpu::matrix_at& c = in.rows > 0 ? maps.b_or_c[segment] : maps.c;
  const std::int64_t column = std::int64_t{k_block - at.first} * gpu::block_k;
  const std::int64_t past = std::int64_t{end - at.first} * gpu::block_k;
  const std::int64_t c_row = in.row_of_result(of.a.begin);
  f.rows = std::clamp<std::int64_t>(c.rows - c_row, 0, of.a.count);
  f.cols = std::min(b.rows, c.columns);
  // What lies beyond either matrix is zero, in both.
  f.depth = std::max<std::int64_t>(std::min({past, a.columns, b.columns}) - column, 0);
  if (f.rows > 0 && f.depth > 0) {
    // Rows beyond A are zero, too, and those of C are not.
    if (at.row + f.rows <= a.rows) f.a = memory_.rectangle(a, at.row, column, f.rows, f.depth);
    f.b = memory_.rectangle(b, 0, column, f.cols, f.depth);
    f.c = memory_.rectangle(c, c_row, 0, f.rows, f.cols);
  }
  f.waits =
      std::make_shared<const std::vector<factors::ready>>(waits_of(of, f.depth, k_block, end, set));
  return {f, next};
}

std::vector<factors::ready> gather_reads::waits_of(const gpu::cta_read& of, std::int64_t depth,
                                                   int k_block, int end, int set) const {
  const gpu::gemm_plan& gemm = m_.plan.gemm;
  std::map<int, std::vector<factors::signal>> by_end;
  // Of the N operand each CTA of a cluster waits for its share, and all of them multiply with it.
  const int shares = gemm.config.swap_ab ? gemm.config.cluster : 1;
  for (int share = 0; share < shares && !m_.plan.protocol.senders_acquire; ++share) {
    const int row =
        gemm.config.swap_ab ? of.a.begin + share * gemm.multicast_rows : of.a_read.begin;
    const awaited_chunks what =
        m_.segments.awaited(m_.arrivals, set, row, of.a_read.count, k_block, end);
    if (what.rows == 0) continue;
    for (int i = 0; i < what.count(); ++i)
      by_end[what.end_of(i / what.rows + 1, end)].push_back(
          {what.counter(i), producer_of(what.counter(i), set)});
  }
  std::vector<factors::ready> waits;
  for (auto& [block, signals] : by_end)
    waits.push_back({std::min(std::int64_t{block - k_block} * gpu::block_k, depth), signals});
  if (waits.empty() || waits.back().depth < depth) waits.push_back({depth, {}});
  return waits;
}

int gather_reads::producer_of(int counter, int set) const {
  const all_gather_gemm_protocol& how = m_.how;
  for (int source = 0; source < how.world() && !how.pulls(); ++source) {
    const int index = counter - how.ready_counter(set, source, 0);
    if (index >= 0 && index < how.most_chunks()) return source;
  }
  return how.rank();
}

}  // namespace untax::plan_check
