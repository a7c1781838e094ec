#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <untax/ops/collectives.hpp>

#include "ops/all_reduce/spec.hpp"
#include "ops/collectives_common/collective_test.hpp"

namespace untax::testing {
namespace {

TEST(all_reduce, is_right_for_random_sizes_worlds_and_patterns) {
  check_random_cases(all_reduce_entry(), 1, 300);
}

TEST(all_reduce, is_right_for_many_chunks) { check_large_cases(all_reduce_entry()); }

TEST(all_reduce, works_in_place) {
  for (const pattern how : collective_patterns) {
    for (const int phases : {1, 2}) {
      if (how == pattern::fused_specialized && phases == 1) continue;
      run_threads(4, [&](world& w) {
        all_reduce op(w, {.count = 4003, .type = dtype::f32},
                      {.how = how, .phases = phases, .workers = 2, .chunk_bytes = 64});
        for (int epoch = 1; epoch <= 5; ++epoch) {
          std::vector<float> values(4003);
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i * static_cast<std::size_t>(epoch + w.rank()));
          op.run(values, values);
          for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], static_cast<float>(i * static_cast<std::size_t>(4 * epoch + 6)));
        }
      });
    }
  }
}

TEST(all_reduce, keeps_the_order_of_ranks) {
  // 2^24 + 1 is no fp32: only the order 2^24 - 2^24 + 1 gives 1.
  constexpr float contributions[] = {16777216.0F, -16777216.0F, 1.0F};
  run_threads(3, [&](world& w) {
    for (const int phases : {1, 2}) {
      all_reduce op(w, {.count = 1000, .type = dtype::f32}, {.phases = phases});
      const std::vector<float> in(1000, contributions[w.rank()]);
      std::vector<float> out(1000);
      op.run(in, out);
      for (const float value : out) ASSERT_EQ(value, 1.0F);
    }
  });
}

TEST(all_reduce, max_and_min_keep_nan) {
  run_threads(3, [](world& w) {
    for (const reduction how : {reduction::max, reduction::min}) {
      all_reduce op(w, {.count = 600, .type = dtype::f32, .how = how});
      std::vector<float> values(600, static_cast<float>(w.rank()));
      if (w.rank() == 1) values[7] = std::numeric_limits<float>::quiet_NaN();
      op.run(values, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == 7) {
          EXPECT_TRUE(std::isnan(values[i]));
        } else {
          EXPECT_EQ(values[i], how == reduction::max ? 2.0F : 0.0F);
        }
      }
    }
  });
}

TEST(all_reduce, takes_two_phases_when_there_is_much_to_send) {
  run_threads(4, [](world& w) {
    EXPECT_EQ(all_reduce(w, {.count = 100}).plan().phases, 1);
    EXPECT_EQ(all_reduce(w, {.count = 1 << 20}).plan().phases, 2);
  });
}

TEST(all_reduce, refuses_wrong_arguments) {
  std::vector<float> values(10);
  expect_refusal(2, "share memory", [&](world& w) {
    all_reduce(w, {.count = 9, .type = dtype::f32}).run({values.data(), 9}, {values.data() + 1, 9});
  });
  expect_refusal(2, "they have to lie apart", [&](world& w) {
    all_reduce op(w, {.count = 10, .type = dtype::f32},
                  {.how = pattern::fused_specialized, .phases = 1});
    op.run(values, values);
  });
  expect_refusal(2, "option phases is 3",
                 [](world& w) { all_reduce(w, {.count = 8}, {.phases = 3}); });
}

TEST(all_reduce, works_directly_in_place) {
  run_threads(4, [](world& w) {
    all_reduce op(w, {.count = 4003, .type = dtype::f32},
                  {.workers = 2, .chunk_bytes = 64, .direct = true});
    const auto memory = w.allocate<float>(4003, "values");
    const std::span<float> values(memory.local(), 4003);
    for (int epoch = 1; epoch <= 5; ++epoch) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i * static_cast<std::size_t>(epoch + w.rank()));
      op.run({values.data(), 4003}, {values.data(), 4003});
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], static_cast<float>(i * static_cast<std::size_t>(4 * epoch + 6)));
    }
  });
}

TEST(all_reduce, direct_in_one_phase_gives_every_rank_the_result) {
  run_threads(3, [](world& w) {
    all_reduce op(w, {.count = 4003, .type = dtype::f32},
                  {.phases = 1, .workers = 2, .chunk_bytes = 64, .direct = true});
    const auto memory = w.allocate<float>(4003, "values");
    const std::span<float> values(memory.local(), 4003);
    // Each rank's result lies elsewhere.
    std::vector<float> out(4003 + static_cast<std::size_t>(w.rank()));
    const std::span<float> sums(out.data() + w.rank(), 4003);
    for (int epoch = 1; epoch <= 5; ++epoch) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i * static_cast<std::size_t>(epoch + w.rank()));
      op.run({values.data(), 4003}, {sums.data(), 4003});
      for (std::size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(sums[i], static_cast<float>(i * static_cast<std::size_t>(3 * epoch + 3)));
    }
  });
}

TEST(all_reduce, refuses_direct_where_it_is_impossible) {
  std::vector<float> in(10);
  std::vector<float> out(10);
  const collective_options direct{.direct = true};
  const auto error_of = [](auto&& body) {
    try {
      run_threads(2, body);
    } catch (const error& e) {
      return std::string(name_of(e.code())) + ": " + e.what();
    }
    return std::string("nothing");
  };
  const std::string not_symmetric = error_of(
      [&](world& w) { all_reduce(w, {.count = 10, .type = dtype::f32}, direct).run(in, out); });
  EXPECT_NE(not_symmetric.find("does not lie in this rank's symmetric heap"), std::string::npos)
      << not_symmetric;
  const std::string elsewhere = error_of([&](world& w) {
    all_reduce op(w, {.count = 10, .type = dtype::f32}, direct);
    const auto memory = w.allocate<float>(40, "values");
    op.run({memory.local(), 10}, {memory.local(static_cast<std::size_t>(10 + w.rank())), 10});
  });
  EXPECT_NE(elsewhere.find("out at offset"), std::string::npos) << elsewhere;
  expect_refusal(2, "they have to lie apart", [&](world& w) {
    all_reduce op(w, {.count = 10, .type = dtype::f32}, {.phases = 1, .direct = true});
    op.run(in, in);
  });
  expect_refusal(2, "goes directly as fused_sequential only", [](world& w) {
    all_reduce(w, {.count = 8}, {.how = pattern::fused_specialized, .direct = true});
  });
}

TEST(all_reduce, reports_a_rank_that_passes_other_known_addresses_than_its_peers) {
  for (const int phases : {1, 2}) {
    for (int wrong = 0; wrong < 3; ++wrong) {
      int told = 0;
      try {
        run_threads(3, [&](world& w) {
          all_reduce op(w, {.count = 40, .type = dtype::f32}, {.phases = phases, .direct = true});
          const auto memory = w.allocate_cleared<float>(240, "values");
          const auto run = [&](int pair) {
            const auto at = static_cast<std::size_t>(80 * pair);
            op.run({memory.local(at), 40}, {memory.local(at + 40), 40});
          };
          for (const int pair : {0, 1, 2, 0, 2, 1, 1, 0}) run(pair);
          run(w.rank() == wrong ? 1 : 2);
          ADD_FAILURE() << "rank " << w.rank() << " has a result of others' memory";
        });
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::disagreement) << e.what();
        const std::string text = e.what();
        EXPECT_NE(text.find("all_reduce: direct"), std::string::npos) << text;
        EXPECT_NE(text.find("at offset"), std::string::npos) << text;
        ++told;
      }
      EXPECT_EQ(told, 1);
    }
  }
}

// Known addresses are only noted: what was retired stays until all ranks meet.
TEST(all_reduce, agrees_on_addresses_once) {
  run_threads(2, [](world& w) {
    all_reduce op(w, {.count = 40, .type = dtype::f32}, {.phases = 1, .direct = true});
    const auto memory = w.allocate_cleared<float>(160, "values");
    const auto run = [&](std::size_t at) {
      op.run({memory.local(at), 40}, {memory.local(at + 40), 40});
    };
    run(0);
    { const all_reduce other(w, {.count = 40, .type = dtype::f32}, {.phases = 1}); }
    EXPECT_GT(w.heap().retired(), 0U);
    run(0);
    EXPECT_GT(w.heap().retired(), 0U);
    run(80);
    EXPECT_EQ(w.heap().retired(), 0U) << "these are new";
  });
}

TEST(all_reduce, with_different_options_at_ranks_is_a_disagreement) {
  int told = 0;
  try {
    run_threads(2, [&](world& w) {
      all_reduce op(w, {.count = 8, .how = w.rank() == 0 ? reduction::sum : reduction::max});
      w.barrier();
    });
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::disagreement) << e.what();
    ++told;
  }
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace untax::testing
