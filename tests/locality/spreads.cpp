// Simulations of blocks that drift, with several seeds: orders that are the same but for the names
// of heads agree within the spread that is shown.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/locality/support.hpp"
#include "tests/slower_build.hpp"

namespace untax::locality::test {
namespace {

assumptions short_runs() {
  assumptions how;
  how.seeds = 5;
  how.steps = 1e6;
  how.waves = 8;
  return how;
}

TEST(spreads, are_taken_over_seeds) {
  const device d = device_named("mi300x");
  const kernel k = kernel_named("attention", {{"heads", 64}, {"keys", 16384}});
  const outcome single = in_order(k, d, "naive block-first");
  EXPECT_EQ(single.seeds, 1);
  EXPECT_EQ(single.rate_spread, 0);
  const outcome mean = in_order(k, d, "naive block-first", short_runs());
  const outcome again = in_order(k, d, "naive block-first", short_runs());
  EXPECT_EQ(mean.seeds, 5);
  EXPECT_GT(mean.rate_spread, 0);
  EXPECT_GT(mean.seconds_spread, 0);
  EXPECT_EQ(mean.all.hit, again.all.hit);
  EXPECT_EQ(mean.seconds, again.seconds);
}

/// If the domains divide the heads, both block-first orders are one up to the names of heads.
TEST(spreads, equivalent_orders_agree_within_them) {
  const device d = device_named("mi300x");
  std::mt19937_64 random(20);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  for (int trial = 0; trial < untax_test::trials(20); ++trial) {
    const double heads = 8.0 * (1 + below(16));
    const double keys = 4096.0 * (1 + below(6));
    const double batches = 1 << below(3);
    SCOPED_TRACE(fmt::format("{} heads, {} keys, {} batches", heads, keys, batches));
    const kernel k =
        kernel_named("attention", {{"heads", heads}, {"keys", keys}, {"batches", batches}});
    const outcome naive = in_order(k, d, "naive block-first", short_runs());
    const outcome swizzled = in_order(k, d, "swizzled block-first", short_runs());
    // A tenth of a point, for kernels whose seeds hardly differ.
    EXPECT_LE(std::abs(naive.all.rate() - swizzled.all.rate()),
              naive.rate_spread + swizzled.rate_spread + 0.001);
  }
}

}  // namespace
}  // namespace untax::locality::test
