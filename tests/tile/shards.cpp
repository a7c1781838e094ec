// How elements are distributed over ranks: completely, in order, and in steps where that is asked
// for.
#include <cstdint>

#include <gtest/gtest.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/tile/shard.hpp>

namespace untax {
namespace {

TEST(shards, follow_each_other_and_are_complete) {
  for (std::int64_t extent = 0; extent < 90; ++extent) {
    for (int parts = 1; parts <= 9; ++parts) {
      for (const std::int64_t step : {1, 3, 8}) {
        const sharding shards{extent, parts, step};
        std::int64_t next = 0;
        for (int part = 0; part < parts; ++part) {
          const range r = shards.of(part);
          EXPECT_EQ(r.begin, next) << extent << " " << parts << " " << step;
          EXPECT_TRUE(r.end() % step == 0 || r.end() == extent);
          EXPECT_LE(r.size, shards.full());
          next = r.end();
        }
        EXPECT_EQ(next, extent);
      }
    }
  }
}

TEST(shards, of_k_and_n_begin_at_multiples_of_8_elements) {
  const all_gather_gemm_problem by_k{.m = 5, .n = 3, .k = 20, .gather = gather_axis::k};
  EXPECT_EQ(all_gather_gemm::a_shard(by_k, 2, 0).cols, 16);
  EXPECT_EQ(all_gather_gemm::a_shard(by_k, 2, 1).cols, 4);
  EXPECT_EQ(all_gather_gemm::a_shard(by_k, 4, 3).cols, 0);
  const all_gather_gemm_problem by_rows{.m = 5, .n = 3, .k = 20, .gather = gather_axis::rows};
  EXPECT_EQ(all_gather_gemm::a_shard(by_rows, 2, 0).rows, 3);
  EXPECT_EQ(gemm_all_scatter::weights_shard({.m = 5, .n = 41, .k = 20}, 4, 0).rows, 16);
  EXPECT_EQ(gemm_all_scatter::weights_shard({.m = 5, .n = 41, .k = 20}, 4, 2).rows, 9);
  EXPECT_EQ(gemm_reduce_scatter::k_shard({.m = 5, .n = 3, .k = 64}, 3, 0), 24);
  EXPECT_EQ(gemm_reduce_scatter::k_shard({.m = 5, .n = 3, .k = 64}, 3, 2), 16);
}

}  // namespace
}  // namespace untax
