// Every operator through the ABI, with small integers, whose sums fp32 holds exactly.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "support.hpp"

namespace {

using namespace c_test;

constexpr int ranks = 3;

struct operand {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> memory;

  operand(const untax_operator* op, const char* name) {
    std::int32_t type = -1;
    EXPECT_OK(untax_operator_operand(op, name, &rows, &cols, &type));
    EXPECT_EQ(type, untax_f32);
    memory.resize(static_cast<std::size_t>(rows * cols));
  }
  [[nodiscard]] untax_const_matrix in() const { return {memory.data(), rows, cols, 0, untax_f32}; }
  [[nodiscard]] untax_matrix out() { return {memory.data(), rows, cols, 0, untax_f32}; }
  [[nodiscard]] untax_const_array in_array() const { return {memory.data(), cols, untax_f32}; }
  [[nodiscard]] untax_array out_array() { return {memory.data(), cols, untax_f32}; }
};

/// Element (i, j) of a whole matrix of small integers.
float element(std::int64_t i, std::int64_t j, int seed) {
  return static_cast<float>((i * 7 + j * 3 + seed) % 5 - 2);
}

void fill(operand& to, std::int64_t row, std::int64_t col, int seed) {
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t j = 0; j < to.cols; ++j)
      to.memory[static_cast<std::size_t>(i * to.cols + j)] = element(row + i, col + j, seed);
  }
}

float product(std::int64_t i, std::int64_t j, std::int64_t k, int seed_of_b) {
  float sum = 0;
  for (std::int64_t x = 0; x < k; ++x) sum += element(i, x, 1) * element(j, x, seed_of_b);
  return sum;
}

TEST(c_operators, all_gather_gemm_gathers_and_multiplies) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_all_gather_gemm_problem p{};
    p.size = sizeof p;
    p.m = 10;
    p.n = 6;
    p.k = 16;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_all_gather_gemm_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    EXPECT_STREQ(untax_operator_kind(op), "all_gather_gemm");
    EXPECT_GT(untax_operator_pattern(op), untax_automatic);
    EXPECT_NE(std::string(untax_operator_explain(op)), "");
    operand a(op, "a");
    operand weights(op, "weights");
    operand c(op, "c");
    fill(a, rank * 4, 0, 1);
    fill(weights, 0, 0, 2 + rank);
    const auto in = a.in();
    const auto b = weights.in();
    const auto out = c.out();
    for (int run = 0; run < 3; ++run) {
      std::fill(c.memory.begin(), c.memory.end(), -99.0F);
      EXPECT_OK(untax_all_gather_gemm_run(op, &in, &b, &out, nullptr));
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j)
          EXPECT_EQ(c.memory[static_cast<std::size_t>(i * p.n + j)], product(i, j, p.k, 2 + rank));
      }
    }
    expect_failure(untax_all_gather_gemm_run(op, &in, &b, &out, op), untax_unsupported,
                   {"all_gather_gemm", "stream is given"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_operators, gemm_all_scatter_ends_with_all_columns) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_gemm_all_scatter_problem p{};
    p.size = sizeof p;
    p.m = 5;
    p.n = 24;
    p.k = 16;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_gemm_all_scatter_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand a(op, "a");
    operand weights(op, "weights");
    fill(a, 0, 0, 1);
    fill(weights, rank * 8, 0, 2);
    const auto in = a.in();
    const auto b = weights.in();
    untax_matrix c{};
    EXPECT_OK(untax_gemm_all_scatter_result(op, &c));
    EXPECT_EQ(c.rows, p.m);
    EXPECT_EQ(c.cols, p.n);
    EXPECT_OK(untax_gemm_all_scatter_run(op, &in, &b, nullptr, nullptr));
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j)
        EXPECT_EQ(static_cast<const float*>(c.data)[i * c.stride + j], product(i, j, p.k, 2));
    }
    std::vector<float> elsewhere(static_cast<std::size_t>(p.m * p.n));
    const untax_matrix private_c{elsewhere.data(), p.m, p.n, 0, untax_f32};
    expect_failure(untax_gemm_all_scatter_run(op, &in, &b, &private_c, nullptr),
                   untax_not_symmetric, {"gemm_all_scatter"});
    expect_failure(untax_gemm_all_scatter_run(op, &in, &b, nullptr, op), untax_unsupported,
                   {"gemm_all_scatter", "stream is given"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_operators, gemm_reduce_scatter_sums_over_ranks) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_gemm_reduce_scatter_problem p{};
    p.size = sizeof p;
    p.m = 7;
    p.n = 4;
    p.k = 24;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_gemm_reduce_scatter_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand a(op, "a");
    operand weights(op, "weights");
    operand c(op, "c");
    fill(a, 0, rank * 8, 1);
    fill(weights, 0, rank * 8, 2);
    const auto in = a.in();
    const auto b = weights.in();
    const auto out = c.out();
    EXPECT_OK(untax_gemm_reduce_scatter_run(op, &in, &b, &out, nullptr));
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j)
        EXPECT_EQ(c.memory[static_cast<std::size_t>(i * p.n + j)],
                  product(rank * 3 + i, j, p.k, 2));
    }
    expect_failure(untax_gemm_reduce_scatter_run(op, &in, &b, &out, op), untax_unsupported,
                   {"stream"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_operators, gemm_all_reduce_sums_over_ranks_everywhere) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_gemm_all_reduce_problem p{};
    p.size = sizeof p;
    p.m = 7;
    p.n = 4;
    p.k = 24;
    untax_operator_options options{};
    options.size = sizeof options;
    for (options.phases = 1; options.phases <= 2; ++options.phases) {
      untax_operator* op = nullptr;
      ASSERT_EQ(untax_gemm_all_reduce_plan(world, &p, &options, &op), untax_ok) << last_text();
      operand a(op, "a");
      operand weights(op, "weights");
      operand c(op, "c");
      fill(a, 0, rank * 8, 1);
      fill(weights, 0, rank * 8, 2);
      const auto in = a.in();
      const auto b = weights.in();
      const auto out = c.out();
      EXPECT_OK(untax_gemm_all_reduce_run(op, &in, &b, &out, nullptr));
      EXPECT_OK(untax_gemm_all_reduce_run(op, &in, &b, nullptr, nullptr));
      untax_matrix own{};
      EXPECT_OK(untax_gemm_all_reduce_result(op, &own));
      EXPECT_EQ(own.rows, p.m);
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          EXPECT_EQ(c.memory[static_cast<std::size_t>(i * p.n + j)], product(i, j, p.k, 2));
          EXPECT_EQ(static_cast<const float*>(own.data)[i * own.stride + j], product(i, j, p.k, 2));
        }
      }
      expect_failure(untax_gemm_all_reduce_run(op, &in, &b, &out, op), untax_unsupported,
                     {"gemm_all_reduce", "stream"});
      EXPECT_OK(untax_operator_destroy(op));
    }
  });
}

// All elements of a row are alike, so what is normalised is the weight.
TEST(c_operators, all_reduce_norm_sums_and_normalises) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_all_reduce_norm_problem p{};
    p.size = sizeof p;
    p.tokens = 5;
    p.hidden = 4;
    p.output = untax_norm_e4m3_per_token;
    untax_operator_options options{};
    options.size = sizeof options;
    for (options.phases = 1; options.phases <= 2; ++options.phases) {
      untax_operator* op = nullptr;
      ASSERT_EQ(untax_all_reduce_norm_plan(world, &p, &options, &op), untax_ok) << last_text();
      operand in(op, "in");
      operand residual(op, "residual");
      operand weight(op, "weight");
      operand x(op, "x");
      std::fill(in.memory.begin(), in.memory.end(), static_cast<float>(rank + 1));
      std::fill(residual.memory.begin(), residual.memory.end(), 10.0F);
      std::fill(weight.memory.begin(), weight.memory.end(), 2.0F);
      std::vector<std::uint8_t> out(x.memory.size());
      std::vector<float> scales(5);
      const auto part = in.in();
      const auto more = residual.in();
      untax_norm_arguments a{};
      a.size = sizeof a;
      a.in = &part;
      a.residual = &more;
      a.weight = weight.memory.data();
      a.x = x.memory.data();
      a.out = out.data();
      a.scales = scales.data();
      EXPECT_OK(untax_all_reduce_norm_run(op, &a, nullptr));
      for (const float element : x.memory) EXPECT_EQ(element, 16.0F);
      // 448 is the largest number of e4m3.
      for (const std::uint8_t element : out) EXPECT_EQ(element, 0x7e);
      for (const float scale : scales) EXPECT_NEAR(scale * 448, 2, 1e-5F);
      a.x = a.out = nullptr;
      EXPECT_OK(untax_all_reduce_norm_run(op, &a, nullptr));
      void* own_x = nullptr;
      void* own_out = nullptr;
      float* own_scales = nullptr;
      EXPECT_OK(untax_all_reduce_norm_result(op, &own_x, &own_out, &own_scales));
      EXPECT_EQ(std::memcmp(own_x, x.memory.data(), x.memory.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(own_out, out.data(), out.size()), 0);
      EXPECT_EQ(std::memcmp(own_scales, scales.data(), scales.size() * sizeof(float)), 0);
      expect_failure(untax_all_reduce_norm_run(op, &a, op), untax_unsupported, {"stream"});
      a.residual = nullptr;
      expect_failure(untax_all_reduce_norm_run(op, &a, nullptr), untax_invalid_argument,
                     {"residual"});
      EXPECT_OK(untax_operator_destroy(op));
    }
  });
}

// With keys that are zero all keys count alike, so the result is the mean of the values.
TEST(c_operators, flash_decode_attends_to_the_keys_of_all_ranks) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_flash_decode_problem p{};
    p.size = sizeof p;
    p.batch = 2;
    p.heads = 4;
    p.kv_heads = 2;
    p.head_dim = 16;
    p.keys = 8;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_flash_decode_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand q(op, "q");
    operand keys(op, "keys");
    operand values(op, "values");
    operand out(op, "out");
    std::fill(q.memory.begin(), q.memory.end(), 1.0F);
    std::fill(values.memory.begin(), values.memory.end(), static_cast<float>(rank));
    const std::vector<std::int32_t> lengths = {4, rank == 1 ? 8 : 0};
    const auto q_in = q.in();
    const auto k_in = keys.in();
    const auto v_in = values.in();
    const auto o_out = out.out();
    EXPECT_OK(
        untax_flash_decode_run(op, &q_in, &k_in, &v_in, lengths.data(), nullptr, &o_out, nullptr));
    for (const float x : out.memory) EXPECT_NEAR(x, 1.0F, 1e-6F);
    expect_failure(
        untax_flash_decode_run(op, &q_in, &k_in, &v_in, nullptr, nullptr, &o_out, nullptr),
        untax_invalid_argument, {"lengths is null"});
    expect_failure(
        untax_flash_decode_run(op, &q_in, &k_in, &v_in, lengths.data(), nullptr, &o_out, op),
        untax_unsupported, {"flash_decode", "stream is given"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

// With queries that are zero all keys that a query sees count alike.
TEST(c_operators, flash_attention_attends_to_the_keys_of_its_own_sequence) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    if (rank == 1) return;  // No rank waits for another.
    untax_flash_attention_problem p{};
    p.size = sizeof p;
    p.batch = 2;
    p.heads = 4;
    p.kv_heads = 2;
    p.head_dim = 8;
    p.queries = p.keys = 3;
    p.causal = 1;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_flash_attention_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand q(op, "q");
    operand keys(op, "keys");
    operand values(op, "values");
    operand out(op, "out");
    fill(keys, 0, 0, 1);
    for (std::size_t i = 0; i < values.memory.size(); ++i) {
      const std::size_t row = i / 16;
      values.memory[i] = static_cast<float>(row);
    }
    std::vector<float> log_sums(24);
    const auto q_in = q.in();
    const auto k_in = keys.in();
    const auto v_in = values.in();
    const auto o_out = out.out();
    untax_attention_arguments a{sizeof a, &q_in,           &k_in,   &v_in,
                                &o_out,   log_sums.data(), nullptr, nullptr};
    EXPECT_OK(untax_flash_attention_run(op, &a, nullptr));
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t first = i < 3 ? 0 : 3;
      EXPECT_NEAR(out.memory[i * 32],
                  static_cast<float>(first) + 0.5F * static_cast<float>(i - first), 1e-6F);
      EXPECT_NEAR(log_sums[i * 4], std::log(1.0F + static_cast<float>(i % 3)), 1e-6F);
    }
    expect_failure(untax_flash_attention_run(op, &a, op), untax_unsupported, {"stream is given"});
    const std::vector<std::int32_t> begins = {0, 3, 6};
    a.query_begins = begins.data();
    expect_failure(untax_flash_attention_run(op, &a, nullptr), untax_invalid_argument,
                   {"one of query_begins and key_begins is null"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

// The sums of the gate are so large that silu leaves them as they are.
TEST(c_operators, linear_multiplies_gate_and_up) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    if (rank == 1) return;  // No rank waits for another.
    const untax_linear_problem p{sizeof p, 3, 8, 2, untax_f32, untax_activation_swiglu};
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_linear_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand x(op, "x");
    operand weights(op, "weights");
    operand bias(op, "bias");
    operand out(op, "out");
    std::iota(x.memory.begin(), x.memory.end(), 200.0F);
    std::fill_n(weights.memory.begin(), 16, 1.0F);
    for (std::size_t i = 0; i < 8; ++i) bias.memory[8 + i] = static_cast<float>(i);
    const auto in = x.in();
    const auto w = weights.in();
    const auto result = out.out();
    untax_linear_arguments a{sizeof a, &in, &w, bias.memory.data(), &result};
    EXPECT_OK(untax_linear_run(op, &a, nullptr));
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_EQ(out.memory[i], static_cast<float>((401 + i / 8 * 4) * (i % 8))) << i;
    a.bias = nullptr;
    EXPECT_OK(untax_linear_run(op, &a, nullptr));
    EXPECT_EQ(out.memory, std::vector<float>(24));
    a.x = nullptr;
    expect_failure(untax_linear_run(op, &a, nullptr), untax_invalid_argument, {"x"});
    a.x = &in;
    expect_failure(untax_linear_run(op, &a, op), untax_unsupported, {"stream is given"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

// Values are appended as they are, and at position 0 nothing is rotated.
TEST(c_operators, rope_append_appends_to_the_pages_of_a_sequence) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    if (rank == 1) return;  // No rank waits for another.
    untax_rope_append_problem p{};
    p.size = sizeof p;
    p.tokens = 2;
    p.heads = 2;
    p.kv_heads = 1;
    p.head_dim = 4;
    p.batch = 2;
    p.keys = 3;
    p.page_size = 2;
    p.pages = 5;
    p.positions = 1;
    p.bias = 1;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_rope_append_plan(world, &p, nullptr, &op), untax_ok) << last_text();
    operand qkv(op, "qkv");
    operand keys(op, "keys");
    operand values(op, "values");
    operand q(op, "q");
    std::iota(qkv.memory.begin(), qkv.memory.end(), 0.0F);
    std::fill(keys.memory.begin(), keys.memory.end(), -1.0F);
    values.memory = keys.memory;
    const std::vector<float> bias(16, 0.5F);
    const float rotations[] = {1, 1, 0, 0};
    std::vector<std::int32_t> position = {0, 0};
    const std::int32_t page_table[] = {3, -1, 1, -1};
    const auto in = qkv.in();
    const auto k_out = keys.out();
    const auto v_out = values.out();
    const auto q_out = q.out();
    untax_rope_append_arguments a{};
    a.size = sizeof a;
    a.qkv = &in;
    a.bias = bias.data();
    a.rotations = rotations;
    a.position = position.data();
    a.page_table = page_table;
    a.keys = &k_out;
    a.values = &v_out;
    a.q = &q_out;
    EXPECT_OK(untax_rope_append_run(op, &a, nullptr));
    for (std::size_t i = 0; i < 8; ++i) {
      const auto element = static_cast<float>(i);
      EXPECT_EQ(q.memory[i], element + 0.5F);
      EXPECT_EQ(q.memory[8 + i], element + 16.5F);
    }
    for (std::size_t row = 0; row < 10; ++row) {
      const float first = row == 6 ? 8.5F : row == 2 ? 24.5F : -1;
      EXPECT_EQ(keys.memory[row * 4], first) << row;
      EXPECT_EQ(values.memory[row * 4], first < 0 ? -1 : first + 4) << row;
    }
    position[1] = 3;
    expect_failure(untax_rope_append_run(op, &a, nullptr), untax_invalid_argument,
                   {"position[1] is 3", "between 0 and 0"});
    expect_failure(untax_rope_append_run(op, &a, op), untax_unsupported, {"stream is given"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

using run_function = int32_t (*)(untax_operator*, const untax_const_array*, const untax_array*,
                                 void*);

/// Plans, runs twice and destroys one collective, and looks at the result.
template <class Expected>
void expect_moves(untax_operator* op, run_function run, int rank, const Expected& expected) {
  operand in(op, "in");
  operand out(op, "out");
  for (std::int64_t i = 0; i < in.cols; ++i)
    in.memory[static_cast<std::size_t>(i)] = static_cast<float>(rank * 100 + i);
  const auto from = in.in_array();
  const auto to = out.out_array();
  for (int twice = 0; twice < 2; ++twice) {
    std::fill(out.memory.begin(), out.memory.end(), -1.0F);
    EXPECT_OK(run(op, &from, &to, nullptr));
    expect_failure(run(op, &from, &to, op), untax_unsupported, {"stream is given"});
    for (std::int64_t i = 0; i < out.cols; ++i)
      EXPECT_EQ(out.memory[static_cast<std::size_t>(i)], expected(i)) << untax_operator_kind(op);
  }
  EXPECT_OK(untax_operator_destroy(op));
}

TEST(c_operators, collectives_move_and_combine) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_operator* op = nullptr;
    const untax_all_gather_problem gather{sizeof gather, 9, untax_f32};
    ASSERT_EQ(untax_all_gather_plan(world, &gather, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_all_gather_run, rank,
                 [](std::int64_t i) { return static_cast<float>(i / 3 * 100 + i % 3); });

    const untax_reduce_scatter_problem scatter{sizeof scatter, 9, untax_f32, untax_max};
    ASSERT_EQ(untax_reduce_scatter_plan(world, &scatter, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_reduce_scatter_run, rank,
                 [rank](std::int64_t i) { return static_cast<float>(200 + rank * 3 + i); });

    const untax_all_reduce_problem reduce{sizeof reduce, 9, untax_f32, untax_sum};
    ASSERT_EQ(untax_all_reduce_plan(world, &reduce, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_all_reduce_run, rank,
                 [](std::int64_t i) { return static_cast<float>(300 + 3 * i); });

    const untax_all_to_all_problem exchange{sizeof exchange, 2, untax_f32, 0, nullptr};
    ASSERT_EQ(untax_all_to_all_plan(world, &exchange, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_all_to_all_run, rank, [rank](std::int64_t i) {
      return static_cast<float>(i / 2 * 100 + rank * 2 + i % 2);
    });

    // Part (from, to) has `to` elements, so rank 0 gets nothing.
    const std::vector<std::int64_t> counts = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    const untax_all_to_all_problem uneven{sizeof uneven, 0, untax_f32, 9, counts.data()};
    ASSERT_EQ(untax_all_to_all_plan(world, &uneven, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_all_to_all_run, rank, [rank](std::int64_t i) {
      return static_cast<float>(rank == 1 ? i * 100 : i / 2 * 100 + 1 + i % 2);
    });

    const untax_broadcast_problem cast{sizeof cast, 5, untax_f32, 1};
    ASSERT_EQ(untax_broadcast_plan(world, &cast, nullptr, &op), untax_ok) << last_text();
    expect_moves(op, untax_broadcast_run, rank,
                 [](std::int64_t i) { return static_cast<float>(100 + i); });
  });
}

}  // namespace
