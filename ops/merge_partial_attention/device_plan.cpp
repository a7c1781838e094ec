#include "ops/merge_partial_attention/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ops/merge_partial_attention/planning.hpp"

namespace untax {

std::string merge_grid::text() const {
  return fmt::format("{}; {} blocks", how.own_heads ? "to each its heads" : "all heads to all",
                     blocks);
}

std::vector<std::string> merge_grid::agreed() const {
  return {fmt::format("ranks {}, tokens {}, heads {}, own heads {}, row chunks {}, slab rows {}",
                      how.ranks, how.tokens, how.heads, how.own_heads, how.row_chunks,
                      how.slab_rows)};
}

merge_grid merge_grid_of(const merge_partial_attention_problem& problem, int world, int rank,
                         int blocks, int multiprocessors) {
  merge_grid grid;
  gpu::merge_rows& how = grid.how;
  how.own_rank = rank;
  how.ranks = world;
  how.tokens = static_cast<int>(problem.tokens);
  how.heads = static_cast<int>(problem.heads);
  how.own_heads = problem.get == merged_heads::own;
  how.row_chunks = static_cast<int>(problem.head_dim / chunk_elements(problem.type));
  how.slab_rows = how.rows_of(0);
  // Rank 0 has as many rows as any.
  grid.blocks = blocks > 0 ? blocks : std::clamp(how.turns_of(0), 1, multiprocessors);
  return grid;
}

}  // namespace untax
