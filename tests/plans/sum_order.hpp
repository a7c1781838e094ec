#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace plans_test {

/// K-blocks whose products are added up by themselves, in this order; those behind k are zeros, and
/// left out.
using partial_sum = std::vector<int>;

/// The sums of a block's MMA warpgroups for a read, in the order of additions of mma_consumer:
/// range by range, and within a stage the first k-block before the second.
inline std::vector<partial_sum> sums_of(const untax::gpu::gemm_plan& plan,
                                        const untax::gpu::cta_read& tile_read, int k_blocks) {
  const untax::gpu::tile_schedule& order = plan.schedule;
  const int each = k_blocks_per_stage(plan.config);
  std::vector<partial_sum> sums;
  for (int begin = tile_read.begin; begin < tile_read.end;) {
    const int end = order.sums_end(begin, tile_read.end);
    const untax::gpu::stage_order stages = order.stages_from(begin);
    for (int place = 0; place < each; ++place) {
      partial_sum& sum = sums.emplace_back();
      for (int at = begin; at < end; at += each)
        if (stages.at(at, place) < k_blocks) sum.push_back(stages.at(at, place));
    }
    begin = end;
  }
  return sums;
}

/// In which order the products of an element are added, of all elements of C: more than one if they
/// differ. `k_blocks`: those that there are.
inline std::set<std::string> sum_orders(const untax::gpu::gemm_plan& plan, int k_blocks) {
  // Blocks of a cluster that split k are added in their order, clusters from the last one on.
  std::map<int, std::map<std::tuple<int, int, int>, std::vector<partial_sum>>> tiles;
  each_read(plan, [&](const untax::gpu::cta_read& tile_read) {
    tiles[tile_read.tile][{-tile_read.cluster, tile_read.split, tile_read.begin}] =
        sums_of(plan, tile_read, k_blocks);
  });
  std::set<std::string> orders;
  for (const auto& [tile, parts] : tiles) {
    std::string text;
    for (const auto& [place, sums] : parts)
      for (const partial_sum& sum : sums) text += fmt::format("({})", fmt::join(sum, "+"));
    orders.insert(text);
  }
  return orders;
}

/// The order of ranges.
inline std::string order_of_ranges(int ranges, int k_blocks) {
  const int each = (k_blocks + ranges - 1) / ranges;
  std::string text;
  for (int begin = 0; begin < k_blocks; begin += each) {
    partial_sum sum;
    for (int i = begin; i < begin + each && i < k_blocks; ++i) sum.push_back(i);
    text += fmt::format("({})", fmt::join(sum, "+"));
  }
  return text;
}

}  // namespace plans_test
