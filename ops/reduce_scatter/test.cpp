#include <vector>

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/collective_test.hpp"
#include "ops/reduce_scatter/spec.hpp"

namespace untax::testing {
namespace {

TEST(reduce_scatter, is_right_for_random_sizes_worlds_and_patterns) {
  check_random_cases(reduce_scatter_entry(), 1, 250);
}

TEST(reduce_scatter, is_right_for_many_chunks) { check_large_cases(reduce_scatter_entry()); }

TEST(reduce_scatter, works_in_place) {
  for (const pattern how : collective_patterns) {
    run_threads(4, [&](world& w) {
      reduce_scatter op(w, {.count = 4003, .type = dtype::f32},
                        {.how = how, .workers = 2, .chunk_bytes = 64});
      const std::size_t begin = 1001U * static_cast<std::size_t>(w.rank());
      const std::size_t size = w.rank() < 3 ? 1001 : 1000;
      for (int epoch = 1; epoch <= 5; ++epoch) {
        std::vector<float> values(4003);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(i * static_cast<std::size_t>(epoch + w.rank()));
        op.run(values, {values.data() + begin, static_cast<std::int64_t>(size)});
        for (std::size_t i = begin; i < begin + size; ++i)
          ASSERT_EQ(values[i], static_cast<float>(i * static_cast<std::size_t>(4 * epoch + 6)));
      }
    });
  }
}

TEST(reduce_scatter, refuses_wrong_arguments) {
  std::vector<float> values(10);
  std::vector<float> shard(5);
  expect_refusal(2, "out has 10 elements; this problem needs 5", [&](world& w) {
    reduce_scatter(w, {.count = 10, .type = dtype::f32}).run(values, values);
  });
  expect_refusal(2, "in has 5 elements; this problem needs 10", [&](world& w) {
    reduce_scatter(w, {.count = 10, .type = dtype::f32}).run(shard, shard);
  });
  // This includes the smallest result, which does not lie in place.
  expect_refusal(2, "share memory", [&](world& w) {
    std::vector<float> mine(3);
    reduce_scatter op(w, {.count = 2, .type = dtype::f32});
    op.run({mine.data(), 2}, {mine.data() + 1 - w.rank(), 1});
  });
}

}  // namespace
}  // namespace untax::testing
