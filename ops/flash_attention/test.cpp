// Attention of many queries: the host engine against plain loops, and the tiles of the kernels.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/half.hpp>
#include <untax/ops/flash_attention.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/flash_attention/order.hpp"
#include "engines/gpu/flash_attention/tile.hpp"
#include "ops/common/random_matrix.hpp"
#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A problem in fp32 with operands of its own.
struct case_of_attention {
  flash_attention_problem problem;
  std::vector<std::int32_t> query_begins;
  std::vector<std::int32_t> key_begins;
  std::vector<float> q, keys, values, out, log_sums;

  case_of_attention(const flash_attention_problem& p, const std::vector<int>& query_lengths,
                    const std::vector<int>& key_lengths, std::uint64_t seed)
      : problem(p), query_begins(begins_of(query_lengths)), key_begins(begins_of(key_lengths)) {
    problem.type = dtype::f32;
    const auto rows = [](std::int64_t count, std::int64_t columns) {
      return std::vector<float>(static_cast<std::size_t>(count * columns), nan);
    };
    const std::int64_t columns = p.heads * p.head_dim;
    q = out = rows(query_begins.back(), columns);
    keys = values = rows(key_begins.back(), p.kv_heads * p.head_dim);
    log_sums = rows(query_begins.back(), p.heads);
    fill(q, columns, seed);
    fill(keys, p.kv_heads * p.head_dim, seed + 1);
    fill(values, p.kv_heads * p.head_dim, seed + 2);
  }

  [[nodiscard]] flash_attention_operands operands(bool vary) {
    const std::int64_t columns = problem.heads * problem.head_dim;
    const std::int64_t kv_columns = problem.kv_heads * problem.head_dim;
    return {.q = {q.data(), query_begins.back(), columns},
            .keys = {keys.data(), key_begins.back(), kv_columns},
            .values = {values.data(), key_begins.back(), kv_columns},
            .out = {out.data(), query_begins.back(), columns},
            .log_sums = log_sums.data(),
            .query_begins = vary ? query_begins.data() : nullptr,
            .key_begins = vary ? key_begins.data() : nullptr};
  }

  /// Computes everything again, by loops that share nothing with the library.
  void expect_right() const {
    const auto width = static_cast<int>(problem.head_dim);
    const auto heads = static_cast<int>(problem.heads);
    const auto kv_heads = static_cast<int>(problem.kv_heads);
    for (std::size_t b = 0; b + 1 < query_begins.size(); ++b) {
      const int queries = query_begins[b + 1] - query_begins[b];
      const int all = key_begins[b + 1] - key_begins[b];
      for (int i = 0; i < queries; ++i) {
        for (int h = 0; h < heads; ++h) {
          const int row = (query_begins[b] + i) * heads + h;
          std::vector<double> sum(static_cast<std::size_t>(width));
          double total = 0;
          for (int k = 0; k < all; ++k) {
            // Counted from the end: the last query sees the last key.
            if (problem.causal && all - k < queries - i) continue;
            const int key = (key_begins[b] + k) * kv_heads + h / (heads / kv_heads);
            double logit = 0;
            for (int j = 0; j < width; ++j) logit += at(q, row, j) * at(keys, key, j);
            const double weight = std::exp(logit / std::sqrt(static_cast<double>(width)));
            total += weight;
            for (int j = 0; j < width; ++j)
              sum[static_cast<std::size_t>(j)] += weight * at(values, key, j);
          }
          for (int j = 0; j < width; ++j) {
            const double right = total > 0 ? sum[static_cast<std::size_t>(j)] / total : 0;
            ASSERT_NEAR(at(out, row, j), right, 1e-5) << "row " << i << " head " << h;
          }
          const auto found = static_cast<double>(log_sums[static_cast<std::size_t>(row)]);
          if (total > 0) {
            ASSERT_NEAR(found, std::log(total), 1e-5);
          } else {
            ASSERT_EQ(found, -std::numeric_limits<double>::infinity());
          }
        }
      }
    }
  }

 private:
  static std::vector<std::int32_t> begins_of(const std::vector<int>& lengths) {
    std::vector<std::int32_t> begins(lengths.size() + 1);
    std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
    return begins;
  }
  static void fill(std::vector<float>& to, std::int64_t columns, std::uint64_t seed) {
    const std::int64_t rows = static_cast<std::int64_t>(to.size()) / columns;
    random_matrix{seed}.fill({to.data(), rows, columns}, {0, rows}, {0, columns});
  }
  [[nodiscard]] double at(const std::vector<float>& m, int row, int column) const {
    return static_cast<double>(
        m[static_cast<std::size_t>(row) * static_cast<std::size_t>(problem.head_dim) +
          static_cast<std::size_t>(column)]);
  }
};

void run_alone(case_of_attention& c, bool vary) {
  run_threads(1, [&](world& w) { flash_attention(w, c.problem).run(c.operands(vary)); });
}

TEST(flash_attention, of_random_problems_equals_plain_loops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 40; ++round) {
    flash_attention_problem p{.batch = number(1, 4),
                              .kv_heads = number(1, 3),
                              .head_dim = number(1, 40),
                              .causal = number(0, 1) == 1};
    p.heads = p.kv_heads * number(1, 3);
    const bool vary = number(0, 2) > 0;
    const int queries = number(0, 30);
    const int keys = number(0, 30);
    std::vector<int> query_lengths;
    std::vector<int> key_lengths;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      query_lengths.push_back(vary ? number(0, queries) : queries);
      key_lengths.push_back(vary ? number(0, keys) : keys);
    }
    p.queries = queries;
    p.keys = keys;
    case_of_attention c(p, query_lengths, key_lengths, seed + static_cast<unsigned>(round));
    run_alone(c, vary);
    c.expect_right();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Results over parts of the keys are merged by their log-sum-exp.
TEST(flash_attention, over_two_halves_merges_to_the_whole) {
  const flash_attention_problem p{.heads = 2, .head_dim = 16, .queries = 9, .keys = 20};
  case_of_attention whole(p, {9}, {20}, 5);
  run_alone(whole, false);
  std::vector<case_of_attention> halves;
  for (const int begin : {0, 7}) {
    flash_attention_problem half = p;
    half.keys = begin == 0 ? 7 : 13;
    halves.emplace_back(half, std::vector{9}, std::vector{static_cast<int>(half.keys)}, 5);
    const auto first = begin * 16;
    const auto count = static_cast<std::ptrdiff_t>(half.keys * 16);
    std::copy_n(whole.keys.begin() + first, count, halves.back().keys.begin());
    std::copy_n(whole.values.begin() + first, count, halves.back().values.begin());
    run_alone(halves.back(), false);
  }
  for (std::size_t row = 0; row < 18; ++row) {
    const float a = std::exp(halves[0].log_sums[row] - whole.log_sums[row]);
    const float b = std::exp(halves[1].log_sums[row] - whole.log_sums[row]);
    EXPECT_NEAR(a + b, 1, 1e-5);
    for (std::size_t j = row * 16; j < row * 16 + 16; ++j)
      EXPECT_NEAR(a * halves[0].out[j] + b * halves[1].out[j], whole.out[j], 1e-5);
  }
}

TEST(flash_attention, rounds_once) {
  constexpr int width = 8;
  std::vector<bf16> q(width);
  std::vector<bf16> keys(2 * width);
  std::vector<bf16> values(2 * width);
  std::vector<bf16> out(width);
  for (std::size_t j = 0; j < width; ++j) {
    values[j] = bf16(1.0F);
    values[width + j] = bf16(1.0078125F);  // the next bf16 number
  }
  const flash_attention_problem p{.head_dim = width, .queries = 1, .keys = 2};
  run_threads(1, [&](world& w) {
    flash_attention(w, p).run({.q = {q.data(), 1, width},
                               .keys = {keys.data(), 2, width},
                               .values = {values.data(), 2, width},
                               .out = {out.data(), 1, width}});
  });
  // In the middle between two bf16 numbers: rounded to the even one.
  for (const bf16 element : out) EXPECT_EQ(static_cast<float>(element), 1.0F);
}

TEST(flash_attention, refuses_impossible_problems) {
  run_threads(1, [](world& w) {
    const auto plan = [&](const flash_attention_problem& p) {
      return error_of([&] { const flash_attention op(w, p); });
    };
    expect_error(plan({.heads = 4, .kv_heads = 3}), errc::invalid_argument,
                 {"rank 0", "heads is 4 and kv_heads 3"});
    expect_error(plan({.queries = -1}), errc::invalid_argument, {"queries is -1", "between 0"});
    expect_error(plan({.scale = -1}), errc::invalid_argument, {"scale is -1", "positive"});
    expect_error(plan({.head_dim = 0}), errc::invalid_argument, {"head_dim is 0"});
    expect_error(plan({.head_dim = 4097}), errc::invalid_argument, {"head_dim is 4097"});
    expect_error(plan({.batch = -1}), errc::invalid_argument, {"batch is -1"});
    expect_error(plan({.kv_heads = 0}), errc::invalid_argument, {"kv_heads is 0"});
    EXPECT_NO_THROW(flash_attention(w, {.batch = 0, .head_dim = 4096}));

    case_of_attention c({.batch = 2, .head_dim = 4, .queries = 3, .keys = 3}, {3, 3}, {3, 3}, 1);
    const auto run = [&](bool vary, const auto& change) {
      flash_attention op(w, c.problem);
      flash_attention_operands o = c.operands(vary);
      change(o);
      return error_of([&] { op.run(o); });
    };
    expect_error(run(false, [](auto& o) { o.q.rows = 5; }), errc::invalid_argument, {"q", "5"});
    expect_error(run(false, [](auto& o) { o.out.type = dtype::bf16; }), errc::invalid_argument,
                 {"out", "bf16"});
    expect_error(run(false, [](auto& o) { o.keys.rows = 5; }), errc::invalid_argument,
                 {"keys is 5"});
    expect_error(run(false, [](auto& o) { o.values.rows = 5; }), errc::invalid_argument,
                 {"values is 5"});
    expect_error(run(false, [&](auto& o) { o.key_begins = c.key_begins.data(); }),
                 errc::invalid_argument, {"give both or none"});
    const std::int32_t falling[] = {0, 3, 2};
    expect_error(run(true, [&](auto& o) { o.key_begins = falling; }), errc::invalid_argument,
                 {"key_begins[2] is 2", "the one before it 3"});
    const std::int32_t behind[] = {0, 3, 7};
    expect_error(run(true, [&](auto& o) { o.query_begins = behind; }), errc::invalid_argument,
                 {"query_begins[2] is 7", "between 0 and 6"});
    const std::int32_t long_one[] = {0, 0, 6};
    expect_error(run(true, [&](auto& o) { o.query_begins = long_one; }), errc::invalid_argument,
                 {"a sequence of 6 rows", "between 0 and 3"});
    flash_attention from(w, c.problem);
    const flash_attention to = std::move(from);
    expect_error(error_of([&] { from.run(c.operands(false)); }),  // NOLINT(bugprone-use-after-move)
                 errc::invalid_argument, {"this operator was moved from"});
  });
}

/// Compares the keys that rows of a tile see with the definition. Each row is in one tile.
TEST(flash_attention_tiles, have_each_row_once_with_all_its_visible_keys) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 60; ++round) {
    const int most = number(0, 600);
    const gpu::flash_shape shape{.batch = number(1, 3),
                                 .heads = 2,
                                 .kv_heads = number(1, 2),
                                 .head_dim = 64 << number(0, 2),
                                 .queries = most,
                                 .causal = number(0, 3) > 0};
    const auto tiles = gpu::flash_tiles::of(shape);
    const int width = tiles.block_keys;
    std::vector<gpu::flash_tiles::range> queries;
    std::vector<gpu::flash_tiles::range> keys;
    int rows = 0;
    int key_rows = 0;
    for (int b = 0; b < shape.batch; ++b) {
      queries.push_back({rows, number(0, most)});
      keys.push_back({key_rows, number(0, 600)});
      rows += queries.back().count;
      key_rows += keys.back().count;
    }
    std::vector<int> done(static_cast<std::size_t>(rows * shape.heads));
    for (int number_of_tile = 0; number_of_tile < tiles.count(); ++number_of_tile) {
      const auto b = static_cast<std::size_t>(tiles.batch_of(number_of_tile));
      const gpu::flash_tile t = tiles.tile(number_of_tile, queries[b], keys[b]);
      ASSERT_EQ(static_cast<std::size_t>(t.batch), b);
      ASSERT_EQ(t.key, keys[b].begin);
      for (int i = 0; i < t.rows; ++i) {
        const int in_sequence = t.row + i - queries[b].begin;
        ++done[static_cast<std::size_t>((t.row + i) * shape.heads + t.head)];
        int sees = 0;
        for (int k = 0; k < keys[b].count; ++k)
          sees += !shape.causal || keys[b].count - k >= queries[b].count - in_sequence ? 1 : 0;
        ASSERT_EQ(t.seen_by(i, shape.causal), sees);
        ASSERT_LE(sees, t.blocks * width);
        // Blocks that are taken for whole contain no key that the row does not see.
        const int group = i / gpu::flash_group_rows * gpu::flash_group_rows;
        ASSERT_LE(t.seen_blocks(group, width, shape.causal) * width, sees);
      }
      if (t.rows > 0 && t.blocks > 0) {
        // No block is read that no row sees.
        ASSERT_GT(t.seen_by(t.rows - 1, shape.causal), (t.blocks - 1) * width);
      }
    }
    for (const int times : done) ASSERT_EQ(times, 1);
  }
}

TEST(flash_attention_tiles, occur_once_in_every_order) {
  for (const bool causal : {false, true}) {
    for (int how = 0; how <= static_cast<int>(order::attention_order::sections); ++how) {
      const gpu::flash_shape shape{
          .batch = 2, .heads = 6, .kv_heads = 2, .queries = 1000, .keys = 3000, .causal = causal};
      auto table = gpu::flash_order_table(shape, static_cast<order::attention_order>(how),
                                          {std::size_t{8} << 20U, 20});
      if (causal) {
        EXPECT_EQ(table.front() % 8, 7) << "the last rows first, of order " << how;
      }
      std::sort(table.begin(), table.end());
      std::vector<std::int32_t> all(2 * 6 * 8);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(table, all) << "order " << how;
    }
  }
  EXPECT_TRUE(
      gpu::flash_order_table({.queries = 0}, order::attention_order::automatic, {}).empty());
}

/// Keys and values of the heads of a section fit into half of L2, and a group is never cut.
TEST(flash_attention_tiles, of_a_section_share_l2) {
  const gpu::flash_shape shape{
      .batch = 1, .heads = 32, .kv_heads = 8, .queries = 4096, .keys = 4096, .causal = true};
  const std::size_t of_head = std::size_t{4} * 128 * 4096;
  const auto table =
      gpu::flash_order_table(shape, order::attention_order::sections, {2 * 3 * of_head, 1});
  // Three heads of the keys, twelve of the queries: their last tiles come first. Eight are left for
  // the first section.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(table[static_cast<std::size_t>(i)], i * 32 + 31);
  EXPECT_EQ(table[8], 30);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(table[static_cast<std::size_t>(8 * 32 + i)], (8 + i) * 32 + 31);
  EXPECT_EQ(table[8 * 32 + 12], 8 * 32 + 30);
}

/// With many multiprocessors few heads would leave some idle at the end: so more end together.
TEST(flash_attention_tiles, of_the_last_section_end_together) {
  const gpu::flash_shape shape{
      .batch = 4, .heads = 8, .kv_heads = 8, .queries = 2520, .keys = 2520, .causal = true};
  const std::size_t of_head = std::size_t{4} * 128 * 2520;
  constexpr int blocks = 20;
  const auto sections = [&](int multiprocessors) {
    return gpu::flash_order_table(shape, order::attention_order::sections,
                                  {2 * 6 * of_head, multiprocessors});
  };
  const auto heads_behind = [&](const std::vector<std::int32_t>& table) {
    // The last section ends with the first tile of each of its heads.
    int count = 0;
    while (count < 32 && table[table.size() - 1 - static_cast<std::size_t>(count)] % blocks == 0)
      ++count;
    return count;
  };
  EXPECT_EQ(heads_behind(sections(1)), 6);
  EXPECT_GT(heads_behind(sections(132)), 6);
  EXPECT_LE(heads_behind(sections(132)), 33);
}

}  // namespace
}  // namespace untax
