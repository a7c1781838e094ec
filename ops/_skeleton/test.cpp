#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include <untax/world/launch.hpp>

#include "ops/_skeleton/spec.hpp"
#include "ops/common/operator_test.hpp"

namespace untax::testing {
namespace {

// Random and fixed cases that all operators share: N(0, 1) inputs, a poisoned result, and a
// reference in fp64.

TEST(skeleton, is_right_for_random_shapes_worlds_and_patterns) {
  check_random_cases(skeleton_entry(), 1, 60);
}

TEST(skeleton, is_right_in_every_pattern_on_a_single_element) {
  check_all_patterns(skeleton_entry(), 1, 1, 1, dtype::f32);
}

TEST(skeleton, is_right_in_every_pattern_where_nothing_divides) {
  check_all_patterns(skeleton_entry(), 37, 53, 72, dtype::bf16);
}

// The operator's other promises. Small integers come out exactly, also where C is a part of a
// larger matrix, and the rest of that matrix stays as it was.

constexpr float untouched = -7;

template <class T>
std::vector<T> random_signs(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> sign(-1, 1);
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.emplace_back(static_cast<float>(sign(random)));
  return values;
}

/// One world, two epochs with new inputs. Sums of at most 200 signs are exact in every element
/// type.
template <class T>
void check_exactly(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const skeleton_problem problem{between(1, 40), between(1, 40), between(1, 200), dtype_of<T>};
  const std::int64_t stride = problem.n + between(0, 5);
  operator_options options;
  options.how = host_patterns[static_cast<std::size_t>(between(0, host_patterns.size() - 1))];
  options.tile_m = between(1, 16);
  options.tile_n = between(1, 16);
  SCOPED_TRACE(fmt::format("seed {}", seed));

  run_threads(between(1, 5), [&](world& w) {
    skeleton op(w, problem, options);
    const range mine = sharding{problem.m, w.size()}.of(w.rank());
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
      const auto a = random_signs<T>(problem.m * problem.k, seed * 4 + epoch);
      const auto b = random_signs<T>(problem.n * problem.k, seed * 4 + epoch + 2);
      std::vector<T> c(static_cast<std::size_t>(problem.m * stride), T(untouched));
      op.run({a.data() + mine.begin * problem.k, mine.size, problem.k},
             {b.data(), problem.n, problem.k}, {c.data(), problem.m, problem.n, stride});
      for (std::int64_t i = 0; i < problem.m; ++i) {
        for (std::int64_t j = 0; j < stride; ++j) {
          float expected = j < problem.n ? 0 : untouched;
          for (std::int64_t l = 0; j < problem.n && l < problem.k; ++l) {
            expected += static_cast<float>(a[static_cast<std::size_t>(i * problem.k + l)]) *
                        static_cast<float>(b[static_cast<std::size_t>(j * problem.k + l)]);
          }
          ASSERT_EQ(static_cast<float>(c[static_cast<std::size_t>(i * stride + j)]), expected)
              << "rank " << w.rank() << " epoch " << epoch << " row " << i << " column " << j;
        }
      }
    }
  });
}

TEST(skeleton, small_integers_come_out_exactly) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    check_exactly<float>(seed);
    check_exactly<f16>(seed);
    check_exactly<bf16>(seed);
  }
}

TEST(skeleton, refuses_a_shard_of_the_wrong_size) {
  run_threads(2, [](world& w) {
    skeleton op(w, {.m = 5, .n = 2, .k = 2, .type = dtype::f32});
    std::vector<float> a(6);
    std::vector<float> b(4);
    std::vector<float> c(10);
    const std::int64_t wrong = w.rank() == 0 ? 2 : 3;
    try {
      op.run({a.data(), wrong, 2}, {b.data(), 2, 2}, {c.data(), 5, 2});
      ADD_FAILURE() << "rank " << w.rank() << " took a shard of " << wrong << " rows";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::invalid_argument);
    }
  });
}

}  // namespace
}  // namespace untax::testing
