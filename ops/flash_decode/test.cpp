#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/attention/shape.hpp"
#include "ops/common/epochs_test.hpp"
#include "ops/flash_decode/planning.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax::testing {
namespace {

struct attention_case {
  attention_work work;
  flash_decode_options options;
  int world = 1;
  int epochs = 3;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string name() const {
    return fmt::format("{}{}, W {}, {}, workers {}, senders {}, splits {}, seed {}",
                       describe(work.problem), work.uneven ? ", uneven" : "", world,
                       name_of(options.how), options.workers, options.senders, options.splits,
                       seed);
  }
};

std::vector<std::byte> check_case(const attention_case& c) {
  SCOPED_TRACE(c.name());
  const trial_subject subject = subject_of(c.work, c.options, memory_kind::host);
  world_options settings;
  settings.heap_bytes = subject.heap_bytes(c.world);
  return same_at_all_ranks(check_epochs(c, settings, subject.tolerance, [&](world& w) {
    return attention_workload(w, c.work, c.options, c.seed);
  }));
}

attention_case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  attention_case c;
  c.seed = seed;
  c.world = static_cast<int>(between(1, 8));
  flash_decode_problem& p = c.work.problem;
  p.batch = between(1, 4);
  p.kv_heads = between(1, 4);
  p.heads = p.kv_heads * between(1, 5);
  p.head_dim = between(0, 3) == 0 ? 64 : between(1, 40);
  p.keys = between(0, 3) == 0 ? between(0, 300) : between(0, 40);
  if (between(0, 1) == 1) {
    p.page_size = between(1, 20);
    p.pages = p.batch * pages_of_sequence(p) + between(1, 5);
  }
  p.type = static_cast<dtype>(between(0, 2));
  if (between(0, 2) == 0) p.partials = dtype::bf16;
  if (between(0, 2) == 0) p.scale = 0.3F;
  if (between(0, 2) == 0) p.logit_cap = 2.0F;
  c.work.uneven = between(0, 3) > 0;
  c.options.how = host_patterns[static_cast<std::size_t>(between(0, host_patterns.size() - 1))];
  c.options.launch = static_cast<launch_mode>(between(0, 1));
  c.options.workers = static_cast<int>(between(1, 3));
  c.options.senders = static_cast<int>(between(1, 2));
  c.options.splits = static_cast<int>(between(0, 4));
  return c;
}

TEST(flash_decode, is_right_for_random_shapes_lengths_pages_and_patterns) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    check_case(random_case(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(flash_decode, gives_the_same_bits_in_every_pattern) {
  for (const dtype partials : {dtype::f32, dtype::bf16}) {
    attention_case c;
    c.work.problem = {.batch = 3, .heads = 12, .kv_heads = 2, .head_dim = 64, .keys = 200};
    c.work.problem.partials = partials;
    c.work.uneven = true;
    c.world = 3;
    c.options.workers = 2;
    c.options.splits = 3;
    const auto bits = check_case(c);
    for (const pattern how : host_patterns) {
      c.options.how = how;
      EXPECT_EQ(check_case(c), bits) << name_of(how);
    }
  }
}

TEST(flash_decode, does_not_depend_on_pages) {
  attention_case c;
  c.work.problem = {.batch = 2, .heads = 4, .kv_heads = 2, .head_dim = 32, .keys = 150};
  c.work.uneven = true;
  c.world = 2;
  const auto bits = check_case(c);
  for (const std::int64_t size : {1, 7, 16, 150, 200}) {
    c.work.problem.page_size = size;
    c.work.problem.pages = 2 * pages_of_sequence(c.work.problem) + 3;
    EXPECT_EQ(check_case(c), bits) << size;
  }
}

TEST(flash_decode, of_a_sequence_without_keys_is_zero) {
  attention_case c;
  c.work.problem = {.batch = 2, .heads = 2, .kv_heads = 1, .head_dim = 8, .keys = 0};
  for (const pattern how : host_patterns) {
    c.options.how = how;
    c.world = 3;
    for (const std::byte b : check_case(c)) EXPECT_EQ(b, std::byte{0});
  }
}

TEST(flash_decode, accepts_logits_beyond_the_range_of_exponentials) {
  // exp(300) overflows fp32; the running maximum avoids it.
  run_threads(2, [](world& w) {
    const flash_decode_problem problem{.batch = 1,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .head_dim = 1,
                                       .keys = 2,
                                       .type = dtype::f32,
                                       .scale = 1};
    flash_decode op(w, problem);
    const float q = 30;
    const std::vector<float> keys = {-10.0F, w.rank() == 0 ? 10.0F : 9.0F};
    const std::vector<float> values = {5, w.rank() == 0 ? 1.0F : 2.0F};
    const std::int32_t length = 2;
    float out = 0;
    op.run({&q, 1, 1}, {{keys.data(), 2, 1}, {values.data(), 2, 1}, &length, nullptr},
           {&out, 1, 1});
    EXPECT_FLOAT_EQ(out, 1.0F);
  });
}

std::string refusal_of(const flash_decode_problem& problem, const flash_decode_options& options) {
  std::string text;
  run_threads(1, [&](world& w) {
    try {
      flash_decode(w, problem, options);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      text = e.what();
    }
  });
  return text;
}

TEST(flash_decode, refuses_problems_that_make_no_sense) {
  const flash_decode_problem fine{.batch = 1, .heads = 4, .kv_heads = 2, .head_dim = 8, .keys = 4};
  const auto expect = [&](const char* part, auto&& change) {
    flash_decode_problem p = fine;
    flash_decode_options o;
    change(p, o);
    const std::string text = refusal_of(p, o);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  using problem = flash_decode_problem&;
  using options = flash_decode_options&;
  expect("heads is 5 and kv_heads 2", [](problem p, options) { p.heads = 5; });
  expect("batch is 0", [](problem p, options) { p.batch = 0; });
  expect("keys is -1", [](problem p, options) { p.keys = -1; });
  expect("pages is 0", [](problem p, options) { p.page_size = 4; });
  expect("pages is 0", [](problem p, options) {
    p.page_size = 4;
    p.keys = 1;
  });
  expect("partials is fp16", [](problem p, options) { p.partials = dtype::f16; });
  expect("scale is -1", [](problem p, options) { p.scale = -1; });
  expect("logit_cap is -2", [](problem p, options) { p.logit_cap = -2; });
  expect("option splits is -1", [](problem, options o) { o.splits = -1; });
  expect("copy_engine", [](problem, options o) { o.how = pattern::copy_engine; });
}

TEST(flash_decode, refuses_arguments_before_anything_moves) {
  run_threads(1, [](world& w) {
    flash_decode_problem p{.batch = 2, .heads = 1, .kv_heads = 1, .head_dim = 4, .keys = 8};
    p.type = dtype::f32;
    p.page_size = 4;
    p.pages = 4;
    flash_decode op(w, p);
    const std::vector<float> q(8);
    const std::vector<float> cache(64);
    std::vector<float> out(8);
    std::vector<std::int32_t> lengths = {8, 8};
    std::vector<std::int32_t> table = {0, 1, 2, 3};
    attention_shard shard{
        {cache.data(), 16, 4}, {cache.data(), 16, 4}, lengths.data(), table.data()};
    const auto refused = [&](const attention_shard& given) {
      try {
        op.run({q.data(), 2, 4}, given, {out.data(), 2, 4});
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::invalid_argument);
        return std::string(e.what());
      }
      return std::string("nothing");
    };
    const auto expect = [&](const attention_shard& given, const char* part) {
      const std::string text = refused(given);
      EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    EXPECT_EQ(refused(shard), "nothing");
    attention_shard other = shard;
    other.lengths = nullptr;
    expect(other, "lengths is null");
    other = shard;
    other.page_table = nullptr;
    expect(other, "page_table is null");
    other = shard;
    other.keys.rows = 15;
    expect(other, "keys is 15 x 4");
    lengths[1] = 9;
    expect(shard, "lengths[1] is 9");
    lengths[1] = 8;
    table[3] = 4;
    expect(shard, "page_table[1, 1] is 4");
    table[3] = 3;
    EXPECT_EQ(refused(shard), "nothing");
    const auto one_key = [&](std::int64_t page_size, const std::int32_t* pages) {
      p.keys = p.page_size = 1;
      p.pages = 2;
      if (page_size == 0) p.page_size = p.pages = 0;
      flash_decode other_op(w, p, {.senders = 3});
      EXPECT_EQ(other_op.plan().senders, 3);
      lengths = {1, 1};
      try {
        other_op.run({q.data(), 2, 4},
                     {{cache.data(), 2, 4}, {cache.data(), 2, 4}, lengths.data(), pages},
                     {out.data(), 2, 4});
      } catch (const error& e) {
        return std::string(e.what());
      }
      return std::string("nothing");
    };
    EXPECT_NE(one_key(1, nullptr).find("page_table is null"), std::string::npos);
    EXPECT_EQ(one_key(1, table.data()), "nothing");
    EXPECT_NE(one_key(0, table.data()).find("page_table is given"), std::string::npos);
  });
}

}  // namespace
}  // namespace untax::testing
