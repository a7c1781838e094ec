// Published measurements beside the simulator. `untax locality published` compares all of them;
// these tests take fewer steps where blocks drift.
#include <gtest/gtest.h>

#include <untax/locality/published.hpp>

#include "tests/locality/support.hpp"

namespace untax::locality::test {
namespace {

TEST(figures, hit_rates_of_gemm_on_mi355x) {
  const auto figures = published("GEMM");
  ASSERT_EQ(figures.size(), 12U);
  double off = 0;
  for (const published_figure& f : figures) off += f.off();
  EXPECT_LE(off / 12, 6);
}

assumptions shorter() {
  assumptions how;
  how.steps = 2.2e6;
  return how;
}

TEST(figures, attention_on_mi300x) {
  const device d = device_named("mi300x");
  const kernel k = kernel_named("attention", {{"heads", 128}, {"keys", 131072}});
  const outcome block_first = in_order(k, d, "naive block-first", shorter());
  const outcome head_first = in_order(k, d, "swizzled head-first", shorter());
  EXPECT_LE(block_first.all.rate(), 0.05);
  EXPECT_GE(head_first.all.rate(), 0.88);
  EXPECT_LE(head_first.all.rate(), 0.97);
  EXPECT_GE(head_first.seconds / block_first.seconds, 0.60);
  EXPECT_LE(head_first.seconds / block_first.seconds, 0.75);
}

TEST(figures, attention_on_mi355x) {
  const device d = device_named("mi355x");
  const kernel k = kernel_named("attention", {{"heads", 64}, {"keys", 65536}});
  EXPECT_NEAR(in_order(k, d, "naive block-first", shorter()).all.rate(), 0.0236, 0.12);
  EXPECT_NEAR(in_order(k, d, "swizzled head-first", shorter()).all.rate(), 0.9362, 0.04);
}

TEST(figures, attention_on_h200) {
  const device d = device_named("h200");
  const kernel k = kernel_named("attention", {{"heads", 128}, {"keys", 32768}});
  const outcome block_first = in_order(k, d, "naive block-first", shorter());
  const outcome head_first = in_order(k, d, "naive head-first", shorter());
  EXPECT_NEAR(block_first.all.rate(), 0.002, 0.06);
  EXPECT_NEAR(head_first.all.rate(), 0.991, 0.06);
  EXPECT_NEAR(block_first.memory_bytes / 550.8e9, 1, 0.05);
}

}  // namespace
}  // namespace untax::locality::test
