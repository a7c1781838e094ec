// No order beats the certificate: random ones, all of the space, on random devices and kernels.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/locality/search.hpp>

#include "tests/locality/support.hpp"
#include "tests/slower_build.hpp"

namespace untax::locality::test {
namespace {

class dice {
 public:
  explicit dice(std::uint64_t seed) : random_(seed) {}
  [[nodiscard]] int from(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

device random_device(dice& dice) {
  device d = device_named(dice.from(0, 1) == 0 ? "mi300x" : "h200");
  d.domains = dice.from(1, 5);
  d.processors = dice.from(1, 12);
  d.chunk = dice.from(1, 4) == 1 ? dice.from(1, 6) : 1;
  d.cache.bytes = dice.from(1, 40) * 32768.0;
  d.cache.ways = 1 << dice.from(0, 4);
  d.cache.sides = dice.from(1, 3);
  return d;
}

kernel random_kernel(dice& dice, int line) {
  const auto size = [&](int least, int most, int unit) {
    return static_cast<double>(dice.from(least, most) * unit);
  };
  switch (dice.from(0, 11)) {
    case 0:
      return kernel_named(
          "gemm", {{"m", size(1, 12, 250)}, {"n", size(1, 12, 256)}, {"k", size(1, 30, 64)}}, line);
    case 1: {
      const double kv = dice.from(1, 5);
      return kernel_named("attention",
                          {{"batches", size(1, 2, 1)},
                           {"kv_heads", kv},
                           {"heads", kv * dice.from(1, 3)},
                           {"keys", size(1, 8, 128)},
                           {"queries", size(1, 8, 128)},
                           {"causal", size(0, 1, 1)},
                           {"width", size(1, 2, 64)}},
                          line);
    }
    case 2:
      return kernel_named("attention_backward",
                          {{"heads", size(1, 6, 1)}, {"keys", size(1, 8, 128)}}, line);
    case 3:
      return kernel_named("stencil2d", {{"m", size(1, 6, 64)}, {"n", size(1, 30, 16)}}, line);
    case 4:
      return kernel_named("transpose", {{"m", size(1, 12, 32)}, {"n", size(1, 12, 32)}}, line);
    case 5:
      return kernel_named("smith_waterman", {{"m", size(1, 10, 256)}, {"n", size(1, 10, 256)}},
                          line);
    case 6:
      return kernel_named("layernorm", {{"m", size(1, 40, 64)}, {"n", size(1, 8, 512)}}, line);
    case 7:
      return kernel_named("softmax", {{"m", size(1, 40, 64)}, {"n", size(1, 8, 512)}}, line);
    case 8:
      return kernel_named("elementwise", {{"m", size(1, 9, 100)}, {"n", size(1, 9, 100)}}, line);
    case 9:
      return kernel_named("fdtd2d", {{"m", size(1, 6, 64)}, {"n", size(1, 30, 16)}}, line);
    case 10:
      return kernel_named("black_scholes", {{"n", size(1, 60, 1000)}}, line);
    default:
      return kernel_named("spmv", {{"n", size(1, 60, 256)}, {"band", size(1, 9, 100)}}, line);
  }
}

TEST(certificates, are_not_beaten_by_any_order) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  dice dice(seed);
  for (int i = 0; i < untax_test::trials(60); ++i) {
    const device d = random_device(dice);
    const kernel k = random_kernel(dice, d.sector);
    const certificate limit = certify(k, d);
    SCOPED_TRACE(fmt::format("{}, {} blocks; {} domains of {}, chunk {}, {} bytes in {} ways",
                             k.title(), k.blocks(), d.domains, d.processors, d.chunk, d.cache.bytes,
                             d.cache.ways));
    std::vector<block_order> space = order_space(k, d.domains);
    std::shuffle(space.begin(), space.end(), dice.random());
    if (space.size() > 12) space.resize(12);
    for (const block_order& order : space) {
      for (const auto way : {order.way, order::direction::sawtooth, order::direction::joined}) {
        const outcome o = simulate(k, d, {order.table(k.blocks()), way});
        ASSERT_LE(o.all.rate(), limit.limit + 1e-9) << order.name << ", steps " << name_of(way);
      }
    }
    if (k.axes().size() == 4) {
      for (const char* name :
           {"naive block-first", "swizzled block-first", "naive head-first", "swizzled head-first"})
        ASSERT_LE(in_order(k, d, name).all.rate(), limit.limit + 1e-9) << name;
    }
    for (int trial = 0; trial < 4; ++trial) {
      const outcome o = simulate(k, d, {shuffled(k.blocks(), dice.random()), {}});
      ASSERT_LE(o.all.rate(), limit.limit + 1e-9) << "a random order";
    }
  }
}

TEST(certificates, are_close_to_the_results_of_the_search) {
  for (const char* name : {"mi300x", "h200"}) {
    const device d = device_named(name);
    for (const kernel& k : {kernel_named("gemm", {{"m", 6144}, {"n", 6144}, {"k", 6144}}),
                            kernel_named("attention", {{"heads", 16}, {"keys", 16384}}),
                            kernel_named("attention_backward", {{"heads", 16}, {"keys", 16384}})}) {
      search_options options;
      options.how.steps = 1e6;
      options.keep = 3;
      options.touches = 2e5;
      options.drifting_steps = 2e5;
      const search_result best = search(k, d, options);
      const double distance = best.limit.limit - best.most_hits.found.all.rate();
      EXPECT_GE(distance, -1e-9) << name << ": " << k.title();
      EXPECT_LE(distance, 0.08) << name << ": " << k.title();
    }
  }
}

TEST(certificates, say_when_no_order_gains_anything) {
  for (const char* name : {"mi300x", "h200"}) {
    const search_result best =
        search(kernel_named("black_scholes", {{"n", 1 << 22}}), device_named(name));
    EXPECT_FALSE(best.is_worth_it);
    EXPECT_NE(best.why_not.find("asked for once"), std::string::npos) << best.why_not;
  }
}

TEST(certificates, do_not_depend_on_threads) {
  const kernel k = kernel_named("gemm", {{"m", 2048}, {"n", 3072}, {"k", 1024}});
  const device d = device_named("mi355x");
  search_options options;
  options.threads = 1;
  options.keep = 3;
  search_options three = options;
  three.threads = 3;
  const search_result a = search(k, d, options);
  const search_result b = search(k, d, three);
  ASSERT_EQ(a.best.size(), b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    EXPECT_EQ(a.best[i].order.name, b.best[i].order.name);
    EXPECT_EQ(a.best[i].found.seconds, b.best[i].found.seconds);
  }
}

}  // namespace
}  // namespace untax::locality::test
