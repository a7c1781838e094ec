#include <numeric>
#include <vector>

#include <untax/ops/collectives.hpp>

#include "ops/broadcast/spec.hpp"
#include "ops/collectives_common/collective_test.hpp"

namespace untax::testing {
namespace {

TEST(broadcast, is_right_for_random_sizes_worlds_and_patterns) {
  check_random_cases(broadcast_entry(), 1, 250);
}

TEST(broadcast, is_right_for_many_chunks) { check_large_cases(broadcast_entry()); }

TEST(broadcast, works_in_place_and_needs_no_input_elsewhere) {
  for (const pattern how : collective_patterns) {
    for (const int phases : {1, 2}) {
      run_threads(4, [&](world& w) {
        broadcast op(w, {.count = 4003, .type = dtype::f32, .root = 2},
                     {.how = how, .phases = phases, .workers = 2, .chunk_bytes = 64});
        std::vector<float> expected(4003);
        for (int epoch = 1; epoch <= 5; ++epoch) {
          std::iota(expected.begin(), expected.end(), static_cast<float>(epoch));
          std::vector<float> values(4003, -1.0F);
          if (w.rank() == 2) values = expected;
          op.run(w.rank() == 2 ? const_array_view(values) : const_array_view(), values);
          ASSERT_EQ(values, expected);
        }
      });
    }
  }
}

TEST(broadcast, refuses_wrong_arguments) {
  expect_refusal(2, "root is 2; it has to be between 0 and 1",
                 [](world& w) { broadcast(w, {.count = 8, .root = 2}); });
  std::vector<float> values(4);
  expect_refusal(2, "out has 4 elements; this problem needs 5", [&](world& w) {
    broadcast(w, {.count = 5, .type = dtype::f32}).run(values, values);
  });
}

}  // namespace
}  // namespace untax::testing
