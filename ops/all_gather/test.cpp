#include <vector>

#include <untax/ops/collectives.hpp>

#include "ops/all_gather/spec.hpp"
#include "ops/collectives_common/collective_test.hpp"

namespace untax::testing {
namespace {

TEST(all_gather, is_right_for_random_sizes_worlds_and_patterns) {
  check_random_cases(all_gather_entry(), 1, 250);
}

TEST(all_gather, is_right_for_many_chunks) { check_large_cases(all_gather_entry()); }

TEST(all_gather, works_in_place) {
  for (const pattern how : collective_patterns) {
    run_threads(4, [&](world& w) {
      all_gather op(w, {.count = 4003, .type = dtype::f32},
                    {.how = how, .workers = 2, .chunk_bytes = 64});
      for (int epoch = 1; epoch <= 5; ++epoch) {
        std::vector<float> all(4003, -1.0F);
        const std::size_t begin = 1001U * static_cast<std::size_t>(w.rank());
        const std::size_t size = w.rank() < 3 ? 1001 : 1000;
        for (std::size_t i = 0; i < size; ++i)
          all[begin + i] = static_cast<float>((begin + i) * static_cast<std::size_t>(epoch));
        op.run({all.data() + begin, static_cast<std::int64_t>(size)}, all);
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(all[i], static_cast<float>(i * static_cast<std::size_t>(epoch))) << i;
      }
    });
  }
}

TEST(all_gather, refuses_wrong_arguments) {
  std::vector<float> all(10);
  const std::vector<float> shard(5);
  const std::vector<bf16> narrow(5);
  const auto run = [&](const const_array_view& in, const array_view& out) {
    return [&all, in, out](world& w) {
      all_gather(w, {.count = 10, .type = dtype::f32}).run(in, out);
    };
  };
  expect_refusal(2, "in has 4 elements; this problem needs 5", run({shard.data(), 4}, all));
  expect_refusal(2, "out has 9 elements; this problem needs 10", run(shard, {all.data(), 9}));
  expect_refusal(2, "in is bf16; this problem needs fp32", run(narrow, all));
  expect_refusal(2, "in is null", run({static_cast<const float*>(nullptr), std::int64_t{5}}, all));
  expect_refusal(2, "share memory", run({all.data() + 2, 5}, all));
  expect_refusal(2, "share memory", [&all](world& w) {
    // A single element, which is in place at the other rank.
    all_gather(w, {.count = 2, .type = dtype::f32})
        .run({all.data() + 1 - w.rank(), 1}, {all.data(), 2});
  });
  expect_refusal(2, "between 0 and",
                 [](world& w) { all_gather(w, {.count = -1, .type = dtype::f32}); });
  expect_refusal(2, "has no pattern bulk_library", [](world& w) {
    all_gather(w, {.count = 8, .type = dtype::f32}, {.how = pattern::bulk_library});
  });
  expect_refusal(2, "option phases is 2; it has to be between 0 (untax chooses) and 1",
                 [](world& w) { all_gather(w, {.count = 8}, {.phases = 2}); });
  expect_refusal(2, "option depth is -1",
                 [](world& w) { all_gather(w, {.count = 8}, {.depth = -1}); });
}

}  // namespace
}  // namespace untax::testing
