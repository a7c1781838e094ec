#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <untax/ops/all_reduce_norm.hpp>
#include <untax/world/launch.hpp>

namespace untax::testing {
namespace {

std::vector<float> random_floats(std::uint64_t seed, std::int64_t count) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(random);
  return values;
}

// An operator that is planned for just these tokens gives the same bits.
TEST(capacity, norm_of_any_number_of_tokens_equals_that_of_a_separate_plan) {
  constexpr std::int64_t capacity = 40;
  constexpr std::int64_t hidden = 24;
  for (const pattern how : {pattern::bulk_synchronous, pattern::fused_sequential,
                            pattern::fused_specialized, pattern::automatic}) {
    for (const int phases : {0, 1, 2}) {
      for (int world = 1; world <= 4; ++world) {
        SCOPED_TRACE(fmt::format("{}, {} phases, {} ranks", name_of(how), phases, world));
        run_threads(world, [&](untax::world& w) {
          const all_reduce_norm_problem problem{.tokens = capacity,
                                                .hidden = hidden,
                                                .type = dtype::f32,
                                                .output = norm_output::e4m3_per_token};
          operator_options options{.how = how, .phases = phases, .tile_m = 3};
          options.varying_rows = true;
          all_reduce_norm any(w, problem, options);
          options.varying_rows = false;
          std::mt19937_64 random(static_cast<std::uint64_t>(world) * 10 +
                                 static_cast<std::uint64_t>(phases));
          const auto weight = random_floats(7, hidden);
          for (int i = 0; i < 12; ++i) {
            const auto tokens = static_cast<std::int64_t>(random() % (capacity + 1));
            const auto seed = random();
            const auto in =
                random_floats(seed + static_cast<std::uint64_t>(w.rank()), capacity * hidden);
            const auto residual = random_floats(seed + 100, capacity * hidden);
            const norm_inputs given{.in = {in.data(), dtype::f32, tokens, hidden},
                                    .residual = {residual.data(), dtype::f32, tokens, hidden},
                                    .weight = weight.data()};
            struct results {
              std::vector<float> x;
              std::vector<std::byte> out;
              std::vector<float> scales;
            };
            const auto text_of_op = [&](all_reduce_norm& op) {
              results r{std::vector<float>(static_cast<std::size_t>(capacity * hidden)),
                        std::vector<std::byte>(static_cast<std::size_t>(capacity * hidden)),
                        std::vector<float>(static_cast<std::size_t>(capacity))};
              op.run(given, {r.x.data(), r.out.data(), r.scales.data()});
              return r;
            };
            const results mine = text_of_op(any);
            if (tokens == 0) continue;
            all_reduce_norm_problem fewer = problem;
            fewer.tokens = tokens;
            all_reduce_norm exact(w, fewer, options);
            const results right = text_of_op(exact);
            EXPECT_EQ(mine.x, right.x) << tokens;
            EXPECT_EQ(mine.out, right.out) << tokens;
            EXPECT_EQ(mine.scales, right.scales) << tokens;
            any.run(given);
            EXPECT_TRUE(std::equal(right.x.begin(), right.x.begin() + tokens * hidden,
                                   static_cast<const float*>(any.result().x)));
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace untax::testing
