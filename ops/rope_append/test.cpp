// What follows a projection to queries, keys and values, on the host: random problems against plain
// loops in fp64, refusals, and the table of rotations against its definition.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/half.hpp>
#include <untax/ops/rope_append.hpp>
#include <untax/ops/rope_table.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/random_matrix.hpp"
#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

/// Elements of any type, and their values.
struct elements {
  dtype type;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  std::vector<float> memory;  // enough for every type

  elements(dtype element_type, std::int64_t row_count, std::int64_t column_count,
           std::int64_t room = 0)
      : type(element_type),
        rows(row_count),
        columns(column_count),
        stride(column_count + room),
        memory(static_cast<std::size_t>(rows * stride)) {}
  [[nodiscard]] matrix view() { return {memory.data(), type, rows, columns, stride}; }
  void fill(std::uint64_t seed) { random_matrix{seed}.fill(view(), {0, rows}, {0, columns}); }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    const auto i = static_cast<std::size_t>(row * stride + column);
    if (type == dtype::f32) return static_cast<double>(memory[i]);
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(memory.data());
    if (type == dtype::f16) {
      f16 half;
      half.bits = halves[i];
      return static_cast<double>(static_cast<float>(half));
    }
    bf16 half;
    half.bits = halves[i];
    return static_cast<double>(static_cast<float>(half));
  }
};

/// A problem with operands of its own. Places of tokens are random, no two the same.
struct append_case {
  rope_append_problem problem;
  elements qkv, bias, q_norm, k_norm, keys, values, q;
  elements old_keys, old_values;
  std::vector<float> rotations;
  std::vector<std::int32_t> position, sequence, page_table;

  append_case(const rope_append_problem& p, std::uint64_t seed, std::int64_t room = 0)
      : problem(p),
        qkv(p.type, p.tokens, (p.heads + 2 * p.kv_heads) * p.head_dim, room),
        bias(p.type, 1, qkv.columns),
        q_norm(p.type, 1, p.head_dim),
        k_norm(p.type, 1, p.head_dim),
        keys(p.type, p.page_size > 0 ? p.pages * p.page_size : p.batch * p.keys,
             p.kv_heads * p.head_dim, room),
        values(keys),
        q(p.type, p.tokens, p.heads * p.head_dim),
        old_keys(keys),
        old_values(keys) {
    std::uint64_t next = seed * 16;
    for (elements* each : {&qkv, &bias, &q_norm, &k_norm, &keys, &values, &q}) each->fill(++next);
    old_keys = keys;
    old_values = values;
    rotations = rope_table({.rotated = rotated()}, p.positions);
    place(seed);
  }
  [[nodiscard]] std::int64_t rotated() const {
    return problem.rotated == 0 ? problem.head_dim : problem.rotated;
  }

  [[nodiscard]] rope_append_operands operands() {
    const auto given = [](bool wanted, elements& m) { return wanted ? m.memory.data() : nullptr; };
    return {.qkv = as_const(qkv.view()),
            .bias = given(problem.bias, bias),
            .q_norm = given(problem.norm, q_norm),
            .k_norm = given(problem.norm, k_norm),
            .rotations = rotations.data(),
            .position = position.data(),
            .sequence = sequence.empty() ? nullptr : sequence.data(),
            .page_table = page_table.empty() ? nullptr : page_table.data(),
            .keys = keys.view(),
            .values = values.view(),
            .q = q.view()};
  }
  void run() {
    run_threads(1, [&](world& w) { rope_append(w, problem).run(operands()); });
  }

  /// Computes everything again in fp64, by loops that share nothing with the library. Rows of the
  /// cache that belong to no token are as before, bit for bit.
  void expect_right() const {
    const rope_append_problem& p = problem;
    std::vector<bool> is_new(static_cast<std::size_t>(keys.rows));
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const std::int64_t row = row_of(t);
      is_new[static_cast<std::size_t>(row)] = true;
      for (std::int64_t head = 0; head < p.heads + 2 * p.kv_heads; ++head) {
        const std::vector<double> right = expected(t, head);
        const bool is_q = head < p.heads;
        const bool is_key = !is_q && head < p.heads + p.kv_heads;
        const elements& found = is_q ? q : is_key ? keys : values;
        const std::int64_t column = (is_q ? head : (head - p.heads) % p.kv_heads) * p.head_dim;
        for (std::int64_t i = 0; i < p.head_dim; ++i) {
          const double value = right[static_cast<std::size_t>(i)];
          ASSERT_NEAR(found.at(is_q ? t : row, column + i), value, tolerance(value))
              << "token " << t << " head " << head << " element " << i;
        }
      }
    }
    for (std::int64_t row = 0; row < keys.rows; ++row) {
      if (is_new[static_cast<std::size_t>(row)]) continue;
      for (std::int64_t i = 0; i < keys.columns; ++i) {
        ASSERT_EQ(keys.at(row, i), old_keys.at(row, i)) << row << ", " << i;
        ASSERT_EQ(values.at(row, i), old_values.at(row, i)) << row << ", " << i;
      }
    }
  }
  void expect_untouched() {
    EXPECT_EQ(keys.memory, old_keys.memory);
    EXPECT_EQ(values.memory, old_values.memory);
  }

 private:
  void place(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const rope_append_problem& p = problem;
    const std::int64_t most = std::min(p.keys, p.positions);
    std::vector<std::int64_t> places(static_cast<std::size_t>(p.batch * most));
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    const bool by_token = p.tokens <= p.batch && random() % 2 == 0;
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const std::int64_t drawn = places[static_cast<std::size_t>(t)];
      position.push_back(static_cast<std::int32_t>(drawn % most));
      if (!by_token) sequence.push_back(static_cast<std::int32_t>(drawn / most));
    }
    if (p.page_size == 0) return;
    page_table.resize(static_cast<std::size_t>(p.pages));
    std::iota(page_table.begin(), page_table.end(), 0);
    std::shuffle(page_table.begin(), page_table.end(), random);
    page_table.resize(static_cast<std::size_t>(p.batch * table_columns()));
  }
  [[nodiscard]] std::int64_t table_columns() const {
    return (problem.keys + problem.page_size - 1) / problem.page_size;
  }
  [[nodiscard]] std::int64_t row_of(std::int64_t t) const {
    const auto i = static_cast<std::size_t>(t);
    const std::int64_t owner = sequence.empty() ? t : sequence[i];
    if (problem.page_size == 0) return owner * problem.keys + position[i];
    const std::int64_t page = page_table[static_cast<std::size_t>(owner * table_columns() +
                                                                  position[i] / problem.page_size)];
    return page * problem.page_size + position[i] % problem.page_size;
  }
  [[nodiscard]] std::vector<double> expected(std::int64_t t, std::int64_t head) const {
    const rope_append_problem& p = problem;
    std::vector<double> y;
    for (std::int64_t i = head * p.head_dim; i < (head + 1) * p.head_dim; ++i)
      y.push_back(qkv.at(t, i) + (p.bias ? bias.at(0, i) : 0));
    if (head >= p.heads + p.kv_heads) return y;
    if (p.norm) {
      double squares = 0;
      for (const double v : y) squares += v * v;
      const double root =
          std::sqrt(squares / static_cast<double>(p.head_dim) + static_cast<double>(p.epsilon));
      for (std::size_t i = 0; i < y.size(); ++i)
        y[i] *= ((head < p.heads ? q_norm : k_norm).at(0, static_cast<std::int64_t>(i)) +
                 static_cast<double>(p.norm_offset)) /
                root;
    }
    const auto half = static_cast<std::size_t>(rotated() / 2);
    std::vector<double> z = y;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position[static_cast<std::size_t>(t)] *
                           std::pow(10000, -static_cast<double>(i) / static_cast<double>(half));
      const std::size_t a = p.interleaved ? 2 * i : i;
      const std::size_t b = p.interleaved ? 2 * i + 1 : i + half;
      z[a] = y[a] * std::cos(angle) - y[b] * std::sin(angle);
      z[b] = y[b] * std::cos(angle) + y[a] * std::sin(angle);
    }
    return z;
  }
  /// Half of the last bit of an element, and the errors of some operations in fp32.
  [[nodiscard]] double tolerance(double value) const {
    const double last_bit = problem.type == dtype::f32   ? 0x1p-24
                            : problem.type == dtype::f16 ? 0x1p-11
                                                         : 0x1p-8;
    return std::abs(value) * last_bit * 1.01 + 1e-5;
  }
};

TEST(rope_append, of_random_problems_equals_plain_loops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (unsigned round = 0; round < 200; ++round) {
    rope_append_problem p{.heads = number(1, 5), .kv_heads = number(1, 3)};
    p.head_dim = 2 * number(1, 24);
    if (number(0, 1) == 0) p.rotated = 2 * number(1, p.head_dim / 2);
    p.batch = number(1, 4);
    p.keys = number(1, 30);
    p.positions = number(1, 40);
    p.tokens = number(0, p.batch * std::min(p.keys, p.positions));
    if (number(0, 1) == 0) {
      p.page_size = number(1, 9);
      p.pages = p.batch * ((p.keys + p.page_size - 1) / p.page_size) + number(0, 3);
    }
    p.type = static_cast<dtype>(number(0, 2));
    p.interleaved = number(0, 1) == 1;
    p.bias = number(0, 1) == 1;
    p.norm = number(0, 1) == 1;
    p.norm_offset = static_cast<float>(number(0, 1));
    append_case c(p, seed + round, number(0, 3));
    c.run();
    c.expect_right();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(rope_append, takes_any_number_of_tokens_up_to_a_capacity) {
  const rope_append_problem p{.tokens = 6, .head_dim = 8, .batch = 6, .keys = 4, .positions = 4};
  run_threads(1, [&](world& w) {
    rope_append op(w, p, {.varying_tokens = true});
    for (const std::int64_t tokens : {6, 1, 0, 4}) {
      rope_append_problem fewer = p;
      fewer.tokens = tokens;
      append_case c(fewer, static_cast<std::uint64_t>(tokens) + 1);
      op.run(c.operands());
      c.expect_right();
    }
    append_case more({.tokens = 7, .head_dim = 8, .batch = 7, .keys = 4, .positions = 4}, 1);
    expect_error(error_of([&] { op.run(more.operands()); }), errc::invalid_argument,
                 {"the number of tokens is 7", "between 0 and 6"});
  });
}

TEST(rope_append, refuses_problems) {
  run_threads(1, [](world& w) {
    const auto plan = [&](const rope_append_problem& p) {
      return error_of([&] { const rope_append op(w, p); });
    };
    expect_error(plan({.tokens = -1}), errc::invalid_argument, {"rank 0", "tokens is -1"});
    expect_error(plan({.heads = 0}), errc::invalid_argument, {"heads is 0"});
    expect_error(plan({.kv_heads = 0}), errc::invalid_argument, {"kv_heads is 0"});
    expect_error(plan({.head_dim = 4098}), errc::invalid_argument, {"head_dim is 4098"});
    expect_error(plan({.head_dim = 7}), errc::invalid_argument, {"rotated is 7", "even"});
    expect_error(plan({.head_dim = 8, .rotated = 10}), errc::invalid_argument,
                 {"rotated is 10", "between 2 and 8"});
    expect_error(plan({.rotated = -2}), errc::invalid_argument, {"rotated is -2"});
    expect_error(plan({.batch = 0}), errc::invalid_argument, {"batch is 0"});
    expect_error(plan({.keys = 0}), errc::invalid_argument, {"keys is 0"});
    expect_error(plan({.page_size = -1}), errc::invalid_argument, {"page_size is -1"});
    expect_error(plan({.page_size = 16}), errc::invalid_argument, {"pages is 0", "between 1"});
    expect_error(plan({.positions = 0}), errc::invalid_argument, {"positions is 0"});
    expect_error(plan({.epsilon = -1}), errc::invalid_argument, {"epsilon is -1"});
    expect_error(plan({.norm_offset = std::numeric_limits<float>::infinity()}),
                 errc::invalid_argument, {"norm_offset is inf"});
  });
}

TEST(rope_append, refuses_operands_before_anything_is_written) {
  const rope_append_problem p{.tokens = 3,
                              .heads = 2,
                              .head_dim = 4,
                              .batch = 3,
                              .keys = 5,
                              .page_size = 2,
                              .pages = 9,
                              .positions = 6,
                              .type = dtype::f32,
                              .bias = true,
                              .norm = true};
  append_case c(p, 1);
  c.sequence = {0, 2, 1};
  c.position = {4, 0, 2};
  run_threads(1, [&](world& w) {
    rope_append op(w, p);
    const auto refused = [&](const auto& change, const std::vector<std::string>& parts) {
      rope_append_operands o = c.operands();
      change(o);
      expect_error(error_of([&] { op.run(o); }), errc::invalid_argument, parts);
      c.expect_untouched();
    };
    refused([](auto& o) { o.qkv.rows = 2; }, {"qkv is 2 x 16", "3 x 16"});
    refused([](auto& o) { o.q.cols = 4; }, {"q is 3 x 4", "3 x 8"});
    refused([](auto& o) { o.keys.rows = 17; }, {"keys is 17 x 4", "18 x 4"});
    refused([](auto& o) { o.values.type = dtype::bf16; }, {"values is bf16"});
    refused([](auto& o) { o.bias = nullptr; }, {"bias is null", "give it"});
    refused([](auto& o) { o.q_norm = nullptr; }, {"q_norm is null"});
    refused([](auto& o) { o.k_norm = nullptr; }, {"k_norm is null"});
    refused([](auto& o) { o.page_table = nullptr; }, {"page_table is null"});
    refused([](auto& o) { o.rotations = nullptr; }, {"rotations is null"});
    refused([](auto& o) { o.position = nullptr; }, {"position is null"});
    refused([](auto& o) { o.q.data = const_cast<void*>(o.qkv.data); }, {"qkv and the result"});
    refused([](auto& o) { o.q.data = o.keys.data; }, {"keys and the result"});

    const std::int32_t full[] = {4, 5, 2};
    refused([&](auto& o) { o.position = full; },
            {"position[1] is 5", "room for 5 keys", "sequence 2 is full"});
    const std::int32_t beyond[] = {4, 0, 6};
    refused([&](auto& o) { o.position = beyond; }, {"position[2] is 6", "between 0 and 5"});
    const std::int32_t before[] = {-1, 0, 2};
    refused([&](auto& o) { o.position = before; }, {"position[0] is -1"});
    const std::int32_t strange[] = {0, 3, 1};
    refused([&](auto& o) { o.sequence = strange; }, {"sequence[1] is 3", "between 0 and 2"});
    std::vector<std::int32_t> table = c.page_table;
    table[2] = 9;
    refused([&](auto& o) { o.page_table = table.data(); },
            {"page_table[0, 2], of token 0, is 9", "between 0 and 8"});
    op.run(c.operands());
    c.expect_right();

    rope_append_problem many = p;
    many.batch = 2;
    many.bias = many.norm = false;
    many.page_size = 0;
    append_case other(many, 2);
    other.sequence.clear();
    expect_error(error_of([&] { rope_append(w, many).run(other.operands()); }),
                 errc::invalid_argument, {"sequence is null", "3 tokens for 2 sequences"});
    rope_append_operands o = other.operands();
    o.bias = c.bias.memory.data();
    expect_error(error_of([&] { rope_append(w, many).run(o); }), errc::invalid_argument,
                 {"bias is given", "no bias", "leave it out"});
    o.bias = nullptr;
    o.page_table = c.page_table.data();
    expect_error(error_of([&] { rope_append(w, many).run(o); }), errc::invalid_argument,
                 {"page_table is given", "leave it out"});
    const rope_append moved = std::move(op);
    expect_error(error_of([&] { op.run(c.operands()); }),  // NOLINT(bugprone-use-after-move)
                 errc::invalid_argument, {"this operator was moved from"});
  });
}

/// Frequencies as the functions of transformers define them, with its names.
double frequency_of_transformers(const rope_frequencies& f, int i) {
  const double dim = static_cast<double>(f.rotated);
  const double inv_freq = 1 / std::pow(f.theta, 2 * i / dim);
  if (f.scaling == rope_scaling::linear) return inv_freq / f.factor;
  if (f.scaling == rope_scaling::llama3) {
    const double low_freq_wavelen = f.original_length / f.low_freq_factor;
    const double high_freq_wavelen = f.original_length / f.high_freq_factor;
    const double wavelen = 2 * std::numbers::pi / inv_freq;
    if (wavelen > low_freq_wavelen) return inv_freq / f.factor;
    if (wavelen < high_freq_wavelen) return inv_freq;
    const double smooth_factor = (f.original_length / wavelen - f.low_freq_factor) /
                                 (f.high_freq_factor - f.low_freq_factor);
    return (1 - smooth_factor) * inv_freq / f.factor + smooth_factor * inv_freq;
  }
  if (f.scaling == rope_scaling::yarn) {
    const auto find_correction_dim = [&](double num_rotations) {
      return dim * std::log(f.original_length / (num_rotations * 2 * std::numbers::pi)) /
             (2 * std::log(f.theta));
    };
    double low = find_correction_dim(f.beta_fast);
    double high = find_correction_dim(f.beta_slow);
    if (f.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
    const double linear_func = (i - low) / (high - low);
    const double factor = 1 - std::min(std::max(linear_func, 0.0), 1.0);
    return inv_freq / f.factor * (1 - factor) + inv_freq * factor;
  }
  return inv_freq;
}

const rope_frequencies all_frequencies[] = {
    {},
    {.theta = 500000, .rotated = 64},
    {.rotated = 96, .scaling = rope_scaling::linear, .factor = 4},
    {.theta = 500000, .scaling = rope_scaling::llama3, .factor = 8, .original_length = 8192},
    {.theta = 500000,
     .rotated = 64,
     .scaling = rope_scaling::llama3,
     .factor = 32,
     .low_freq_factor = 2,
     .high_freq_factor = 3,
     .original_length = 512},
    {.theta = 1000000, .scaling = rope_scaling::yarn, .factor = 4, .original_length = 32768},
    {.rotated = 64,
     .scaling = rope_scaling::yarn,
     .factor = 40,
     .beta_fast = 16,
     .beta_slow = 2,
     .truncate = false,
     .attention_factor = 1.25,
     .original_length = 4096},
    {.rotated = 8, .scaling = rope_scaling::yarn, .factor = 0.5, .original_length = 6}};

TEST(rope_table, has_the_frequencies_of_transformers) {
  for (const rope_frequencies& f : all_frequencies) {
    SCOPED_TRACE(name_of(f.scaling));
    const std::vector<double> angles = rope_angles(f);
    ASSERT_EQ(angles.size(), static_cast<std::size_t>(f.rotated / 2));
    for (std::size_t i = 0; i < angles.size(); ++i) {
      const double right = frequency_of_transformers(f, static_cast<int>(i));
      EXPECT_NEAR(angles[i], right, 1e-12 * right) << i;
    }
  }
}

TEST(rope_table, has_cosines_then_sines) {
  for (const rope_frequencies& f : all_frequencies) {
    const double scale = f.scaling != rope_scaling::yarn ? 1
                         : f.attention_factor > 0        ? f.attention_factor
                         : f.factor > 1                  ? 1 + 0.1 * std::log(f.factor)
                                                         : 1;
    const std::vector<double> angles = rope_angles(f);
    const std::vector<float> table = rope_table(f, 70);
    ASSERT_EQ(table.size(), 70 * 2 * angles.size());
    const float* row = table.data();
    for (int position = 0; position < 70; ++position) {
      for (const double angle : angles)
        ASSERT_EQ(*row++, static_cast<float>(scale * std::cos(position * angle)));
      for (const double angle : angles)
        ASSERT_EQ(*row++, static_cast<float>(scale * std::sin(position * angle)));
    }
  }
}

TEST(rope_table, refuses) {
  const auto refused = [](const rope_frequencies& f, const std::vector<std::string>& parts) {
    expect_error(error_of([&] { (void)rope_table(f, 4); }), errc::invalid_argument, parts);
  };
  using enum rope_scaling;
  refused({.rotated = 3}, {"rotated is 3", "even"});
  refused({.rotated = 0}, {"rotated is 0", "between 2 and 4096"});
  refused({.theta = 0}, {"theta is 0", "positive"});
  refused({.scaling = linear, .factor = -1}, {"factor is -1"});
  refused({.scaling = llama3, .factor = 8}, {"original_length is 0"});
  refused({.scaling = llama3, .low_freq_factor = 0, .original_length = 9},
          {"low_freq_factor is 0"});
  refused({.scaling = llama3, .low_freq_factor = 4, .original_length = 9},
          {"high_freq_factor is 4 and low_freq_factor 4", "larger"});
  refused({.scaling = yarn, .beta_fast = 0, .original_length = 9}, {"beta_fast is 0"});
  refused({.scaling = yarn, .beta_slow = 0, .original_length = 9}, {"beta_slow is 0"});
  refused({.theta = 1, .scaling = yarn, .original_length = 9}, {"theta is 1"});
  refused({.scaling = yarn, .attention_factor = -1, .original_length = 9},
          {"attention_factor is -1"});
  expect_error(error_of([] { (void)rope_table({}, -1); }), errc::invalid_argument,
               {"positions is -1"});
}

}  // namespace
}  // namespace untax
