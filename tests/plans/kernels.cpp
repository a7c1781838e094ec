// The kernels that there are: they fit a multiprocessor of Hopper, are listed once, and are looked
// up by equality.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "engines/gpu/gemm/kernels.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/variant.hpp"
#include "ops/common/planning.hpp"
#include "tests/errors.hpp"

namespace untax::gpu {
namespace {

/// Limits of a block.
constexpr std::int64_t most_shared_bytes = 227 * 1024;
std::int64_t to_1024(std::int64_t bytes) { return (bytes + 1023) / 1024 * 1024; }

/// Of the memory of a block, part by part: see block_memory.
std::int64_t shared_bytes(const tile_config& c) {
  const int groups = c.warpgroup_split_k ? 1 : 2;
  const int k_blocks = c.warpgroup_split_k ? 2 : 1;
  const std::int64_t stage = k_blocks * (groups * 64 + c.block_n) * 64 * 2;
  const std::int64_t subtiles = groups * c.epilogue_buffers * to_1024(subtile_bytes(c));
  const bool has_halves = c.warpgroup_split_k && c.cluster_split_k == 1;
  const std::int64_t halves = has_halves ? std::int64_t{64} * c.block_n * 4 : 16;
  const std::int64_t share = std::max(c.block_n / c.cluster_split_k, 16);
  const std::int64_t others = c.cluster_split_k == 1 ? 0 : c.cluster_split_k * k_blocks - 1;
  const std::int64_t sums = others * groups * 64 * share * 4;
  const std::int64_t barriers = 8 * (2 * c.stages + groups * (2 * c.epilogue_buffers + 1) + 2) + 16;
  return to_1024(c.stages * to_1024(stage) + subtiles + halves + sums + barriers) + 1024;
}

void expect_sound(const tile_config& c) {
  SCOPED_TRACE((gemm_plan{c, {}}.text()));
  EXPECT_LE(shared_bytes(c), most_shared_bytes);
  EXPECT_GE(c.stages, 3);
  // Columns that the tensor cores take.
  EXPECT_TRUE(c.block_n % 8 == 0 && c.block_n >= 16 && c.block_n <= 256);
  EXPECT_EQ(tile_rows(c), c.warpgroup_split_k ? 64 : 128);
  EXPECT_EQ(storing_warpgroups(c), c.warpgroup_split_k ? 1 : 2);
  EXPECT_EQ(k_blocks_per_stage(c), c.warpgroup_split_k ? 2 : 1);
  EXPECT_EQ(tile_rows(c) * k_blocks_per_stage(c), mma_warpgroups * warpgroup_rows);
  EXPECT_EQ(cluster_blocks(c), c.cluster * c.cluster_split_k);
  EXPECT_LE(cluster_blocks(c), 8);
  // Shares of a tile's columns, and sub-tiles of a share, are all of it.
  EXPECT_EQ(share_columns(c), std::max(c.block_n / c.cluster_split_k, 16));
  EXPECT_EQ(share_columns(c) * shares_of(c), c.block_n);
  EXPECT_EQ(subtile_columns(c) * subtiles_of(c), share_columns(c));
  EXPECT_EQ(subtile_columns(c) % 8, 0);
  EXPECT_LE(subtile_columns(c), 64);
  for (int columns = subtile_columns(c) + 8; columns <= 64; columns += 8)
    EXPECT_NE(share_columns(c) % columns, 0) << "sub-tiles could be larger";
  // A sub-tile is 64 rows of the M operand and some of the N operand, and C has N down with
  // swap_ab.
  EXPECT_EQ(c_tma_tile_rows(c), c.swap_ab ? subtile_columns(c) : 64);
  EXPECT_EQ(c_tma_tile_columns(c), c.swap_ab ? 64 : subtile_columns(c));
  EXPECT_EQ(subtile_bytes(c), c_tma_tile_rows(c) * 64 * 2);
  EXPECT_EQ(partial_bytes(c), tile_rows(c) * c.block_n * 4);
  EXPECT_EQ(reads_early(c), c.swap_ab && c.block_n == 16);
}

TEST(kernels, are_sound_and_listed_once) {
  for (const tile_config& c : gemm_kernels) {
    expect_sound(c);
    EXPECT_EQ(std::ranges::count(gemm_kernels, c), 1) << "listed once";
  }
  for (const tile_config& c : gather_kernels) EXPECT_EQ(std::ranges::count(gemm_kernels, c), 1);
  for (const tile_config& c : packet_kernels) {
    EXPECT_EQ(std::ranges::count(gemm_kernels, c), 1);
    EXPECT_TRUE(c.swap_ab && c.block_n == 16) << "the consumer takes rows of packets by 16";
  }
  for (const tile_config& c : scatter_kernels) {
    expect_sound(c);
    EXPECT_GE(c.epilogue_buffers, subtiles_of(c)) << "a whole tile has its place while it leaves";
    EXPECT_EQ(c.cluster_split_k, 1);
  }
}

/// Registers of a block: the file of a multiprocessor has 65536, given in steps of 8 a thread.
TEST(kernels, have_registers_that_fit) {
  for (const register_shares& shares :
       {registers_alone, registers_with_peers, registers_with_sums}) {
    EXPECT_LE(warpgroup_threads * (shares.producer + mma_warpgroups * shares.consumer), 65536);
    EXPECT_EQ(shares.producer % 8, 0);
    EXPECT_EQ(shares.consumer % 8, 0);
    EXPECT_GE(shares.producer, 24);
    EXPECT_LE(shares.consumer, 255);
  }
  EXPECT_EQ(block_threads, 384);
}

TEST(kernels, are_looked_up_by_equality) {
  std::vector<kernel_variant> variants;
  for (const tile_config& c : gemm_kernels) variants.push_back({c, nullptr, 0});
  for (const tile_config& c : gemm_kernels) EXPECT_EQ(variant_for(variants, c).config, c);
  // Each field counts.
  for (const tile_config& c : gemm_kernels) {
    for (int field = 0; field < 7; ++field) {
      tile_config other = c;
      if (field == 0) other.block_n += 1000;
      if (field == 1) other.cluster += 1000;
      if (field == 2) other.stages += 1000;
      if (field == 3) other.swap_ab = !other.swap_ab;
      if (field == 4) other.epilogue_buffers += 1000;
      if (field == 5) other.warpgroup_split_k = !other.warpgroup_split_k;
      if (field == 6) other.cluster_split_k += 1000;
      EXPECT_NE(other, c);
      if (std::ranges::count(gemm_kernels, other) > 0) continue;
      const error e = untax_test::error_of([&] { (void)variant_for(variants, other); });
      EXPECT_EQ(e.code(), errc::internal) << "field " << field;
    }
  }
}

TEST(kernels, of_an_operator_may_keep_other_stages) {
  const tile_config kept[] = {{256, 2, 3, false, 4}, {16, 1, 10, true, 2, true}};
  EXPECT_EQ(compiled_for(kept, {256, 2, 4, false, 2}), kept[0]);
  EXPECT_EQ(compiled_for(kept, {256, 2, 4, true, 2}), std::nullopt);
  EXPECT_EQ(compiled_for(kept, {224, 2, 4, false, 2}), std::nullopt);
  EXPECT_EQ(compiled_for(kept, {256, 1, 3, false, 4}), std::nullopt);
  EXPECT_EQ(compiled_for(kept, {16, 1, 10, true, 1, true, 2}), std::nullopt);
  EXPECT_EQ(compiled_for(kept, {16, 1, 10, true, 2, false}), std::nullopt);
}

TEST(kernels, keep_weights_for_the_widest_tiles) {
  tile_config c{.block_n = 129, .swap_ab = true};
  EXPECT_TRUE(keeps_weights(c));
  c.block_n = 128;
  EXPECT_FALSE(keeps_weights(c));
  EXPECT_FALSE(keeps_weights({.block_n = 256}));
  EXPECT_FALSE(keeps_weights({.block_n = 256, .swap_ab = true, .warpgroup_split_k = true}));
}

}  // namespace
}  // namespace untax::gpu
