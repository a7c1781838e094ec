#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/variant.hpp"

namespace untax {
namespace {

TEST(kernel_variants, are_looked_up_by_equality) {
  std::vector<gpu::kernel_variant> variants;
  for (const gpu::tile_config& c : gpu::tile_configs()) variants.push_back({c, nullptr, 0});
  for (const gpu::tile_config& c : gpu::tile_configs())
    EXPECT_EQ(gpu::variant_for(variants, c).config, c);
  // Each field counts.
  for (const gpu::tile_config& c : gpu::tile_configs()) {
    for (int field = 0; field < 7; ++field) {
      gpu::tile_config other = c;
      if (field == 0) other.block_n += 1000;
      if (field == 1) other.cluster += 1000;
      if (field == 2) other.stages += 1000;
      if (field == 3) other.swap_ab = !other.swap_ab;
      if (field == 4) other.epilogue_buffers += 1000;
      if (field == 5) other.warpgroup_split_k = !other.warpgroup_split_k;
      if (field == 6) other.cluster_split_k += 1000;
      EXPECT_NE(other, c);
      if (std::ranges::count(gpu::tile_configs(), other) > 0) continue;
      try {
        (void)gpu::variant_for(variants, other);
        ADD_FAILURE() << "field " << field << " does not count";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::internal);
      }
    }
  }
}

TEST(kernel_variants, of_an_operator_may_keep_other_stages) {
  const gpu::tile_config kernels[] = {{256, 2, 3, false, 4}, {16, 1, 10, true, 2, true}};
  EXPECT_EQ(gpu::compiled_for(kernels, {256, 2, 4, false, 2}), kernels[0]);
  EXPECT_EQ(gpu::compiled_for(kernels, {256, 2, 4, true, 2}), std::nullopt);
  EXPECT_EQ(gpu::compiled_for(kernels, {224, 2, 4, false, 2}), std::nullopt);
  EXPECT_EQ(gpu::compiled_for(kernels, {256, 1, 3, false, 4}), std::nullopt);
  EXPECT_EQ(gpu::compiled_for(kernels, {16, 1, 10, true, 1, true, 2}), std::nullopt);
  EXPECT_EQ(gpu::compiled_for(kernels, {16, 1, 10, true, 2, false}), std::nullopt);
}

TEST(kernel_variants, are_listed_once) {
  for (const gpu::tile_config& c : gpu::tile_configs())
    EXPECT_EQ(std::ranges::count(gpu::tile_configs(), c), 1);
}

}  // namespace
}  // namespace untax
