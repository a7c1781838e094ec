#include <vector>

#include <untax/ops/collectives.hpp>

#include "ops/all_to_all/spec.hpp"
#include "ops/collectives_common/collective_test.hpp"

namespace untax::testing {
namespace {

TEST(all_to_all, is_right_for_random_sizes_worlds_and_patterns) {
  check_random_cases(all_to_all_entry(), 1, 250);
}

TEST(all_to_all, is_right_for_many_chunks) { check_large_cases(all_to_all_entry()); }

TEST(all_to_all, moves_parts_of_the_given_counts) {
  run_threads(3, [](world& w) {
    // Rank 1 sends nothing, rank 2 gets nothing.
    all_to_all op(w, {.type = dtype::f32, .counts = {1, 2, 0, 0, 0, 0, 3, 1, 0}},
                  {.workers = 2, .chunk_bytes = 8});
    const std::vector<std::vector<float>> in = {{1, 2, 3}, {}, {4, 5, 6, 7}};
    const std::vector<std::vector<float>> expected = {{1, 4, 5, 6}, {2, 3, 7}, {}};
    const auto rank = static_cast<std::size_t>(w.rank());
    for (int epoch = 1; epoch <= 5; ++epoch) {
      std::vector<float> out(expected[rank].size(), -1.0F);
      op.run(in[rank], out);
      EXPECT_EQ(out, expected[rank]);
    }
  });
}

TEST(all_to_all, moves_like_any_operator_object) {
  run_threads(2, [](world& w) {
    all_to_all first(w, {.type = dtype::f32, .counts = {1, 2, 3, 4}});
    all_to_all op = std::move(first);
    const std::vector<float> in(w.rank() == 0 ? 3 : 7, static_cast<float>(w.rank()));
    std::vector<float> out(w.rank() == 0 ? 4 : 6);
    op.run(in, out);
    EXPECT_EQ(out.front(), 0.0F);
    EXPECT_EQ(out.back(), 1.0F);
  });
}

TEST(all_to_all, refuses_wrong_arguments) {
  std::vector<float> values(4);
  expect_refusal(2, "they have to lie apart", [&](world& w) {
    all_to_all(w, {.count = 2, .type = dtype::f32}).run(values, values);
  });
  expect_refusal(2, "counts has 3 entries; 2 ranks need 4", [](world& w) {
    all_to_all(w, {.counts = {1, 2, 3}});
  });
  expect_refusal(2, "the part of rank 1 for rank 0 is -3", [](world& w) {
    all_to_all(w, {.counts = {1, 2, -3, 4}});
  });
}

}  // namespace
}  // namespace untax::testing
