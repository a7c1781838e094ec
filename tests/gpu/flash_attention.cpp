// Attention of many queries on one GPU against fp64: widths, types, lengths that nothing divides,
// causal, grouped, sequences of different lengths, orders of tiles.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/flash_attention.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/flash_attention/flash_attention.hpp"
#include "gpus.hpp"
#include "ops/common/deviation.hpp"
#include "ops/flash_attention/reference.hpp"
#include "rows_of_heads.hpp"

namespace {

using namespace gpu_test;
using untax::const_matrix;
using untax::dtype;
using untax::matrix;
using untax::gpu::flash_operands;
using untax::gpu::flash_runner;
using untax::gpu::flash_shape;
using untax::order::attention_order;

/// The largest relative error of a result in the Frobenius norm. Errors of elements are sums of
/// roundings of weights and values that are independent of each other: the largest of 10^9 is six
/// times their root mean square.
double tolerance_of(dtype type) { return type == dtype::bf16 ? 5e-3 : 1e-3; }
constexpr double logarithm_tolerance = 1e-3;

/// Where sequences begin; empty where all have one length.
struct sequences {
  std::vector<std::int32_t> query_begins;
  std::vector<std::int32_t> key_begins;
};

std::vector<std::int32_t> begins_of(const std::vector<int>& lengths) {
  std::vector<std::int32_t> begins(lengths.size() + 1);
  std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
  return begins;
}

std::string text_of(const flash_shape& s) {
  return fmt::format("{} x {} / {} heads of {}, {} queries, {} keys{}, {}", s.batch, s.heads,
                     s.kv_heads, s.head_dim, s.queries, s.keys, s.causal ? ", causal" : "",
                     name_of(s.type));
}

/// In an order, with two queues of tiles and multiprocessors of either at random.
flash_runner in_two_queues(const flash_shape& shape, attention_order how, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto table = untax::gpu::flash_order_table(shape, how, {std::size_t{50} << 20U, 132});
  untax::gpu::flash_queues queues{std::vector<std::uint8_t>(1024),
                                  static_cast<int>(random() % (table.size() + 1))};
  for (std::uint8_t& queue : queues.of_sm) queue = static_cast<std::uint8_t>(random() % 2);
  return {shape, table, queues};
}

/// Blocks of the kernels have at least so many queries.
constexpr int rows_of_a_block = 64;

/// Rows of a sequence: the first and the last one, and one of each block.
std::vector<int> rows_to_compare(int queries, std::mt19937_64& random) {
  if (queries == 0) return {};
  std::vector<int> rows = {0, queries - 1};
  for (int begin = 0; begin < queries; begin += rows_of_a_block)
    rows.push_back(begin + static_cast<int>(random() % static_cast<unsigned>(std::min(
                                                           rows_of_a_block, queries - begin))));
  return rows;
}

/// Runs a shape twice, and once with two queues, and compares rows of every head with fp64, one of
/// each block and the first and the last ones of each sequence.
void expect_right(flash_shape shape, const sequences& lengths, attention_order how,
                  std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, order {}, seed {}", text_of(shape), static_cast<int>(how), seed));
  const bool vary = !lengths.query_begins.empty();
  const int query_rows = vary ? lengths.query_begins.back() : shape.batch * shape.queries;
  const int key_rows = vary ? lengths.key_begins.back() : shape.batch * shape.keys;
  shape.scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  const stream on;
  const int width = shape.head_dim;
  rows_of_heads q(query_rows, shape.heads * width, shape.type, on);
  rows_of_heads k(key_rows, shape.kv_heads * width, shape.type, on);
  rows_of_heads v(key_rows, shape.kv_heads * width, shape.type, on);
  rows_of_heads out(query_rows, shape.heads * width, shape.type, on);
  q.fill(seed * 3);
  k.fill(seed * 3 + 1);
  v.fill(seed * 3 + 2);
  const auto sums = static_cast<std::size_t>(query_rows) * static_cast<std::size_t>(shape.heads);
  const on_device<float> log_sums(sums);
  const on_device query_begins(lengths.query_begins, on);
  const on_device key_begins(lengths.key_begins, on);
  const flash_runner op(shape, how);
  const flash_runner queued = in_two_queues(shape, how, seed);
  const flash_operands operands{.query_rows = query_rows,
                                .key_rows = key_rows,
                                .queries = q.device(),
                                .keys = k.device(),
                                .values = v.device(),
                                .out = out.device(),
                                .log_sums = log_sums.data(),
                                .query_begins = vary ? query_begins.data() : nullptr,
                                .key_begins = vary ? key_begins.data() : nullptr,
                                .queries_stride = q.stride(),
                                .keys_stride = k.stride(),
                                .values_stride = v.stride(),
                                .out_stride = out.stride()};
  std::vector<std::uint16_t> first;
  for (const flash_runner* runner : {&op, &op, &queued, &queued}) {
    out.poison();
    ok(cudaMemsetAsync(log_sums.data(), 0xff, sums * sizeof(float), on.get()));
    runner->run(operands, on.get());
    ok(cudaStreamSynchronize(on.get()));
    out.fetch();
    if (first.empty()) first = out.bits();
    EXPECT_TRUE(first == out.bits()) << "another run gives other bits";
  }
  EXPECT_TRUE(out.room_is_untouched());
  const std::vector<float> sums_found = values(log_sums.data(), sums, on);

  std::mt19937_64 random(seed);
  untax::deviation elements(tolerance_of(shape.type));
  untax::deviation logarithms(logarithm_tolerance);
  int bad_zeros = 0;
  for (int b = 0; b < shape.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const int query = vary ? lengths.query_begins[at] : b * shape.queries;
    const int queries = vary ? lengths.query_begins[at + 1] - query : shape.queries;
    const int key = vary ? lengths.key_begins[at] : b * shape.keys;
    const int keys = vary ? lengths.key_begins[at + 1] - key : shape.keys;
    for (int head = 0; head < shape.heads; ++head) {
      const int of_keys = head / shape.group() * width;
      const untax::attended_keys on_host(k.part(key, keys, of_keys, width),
                                         v.part(key, keys, of_keys, width),
                                         static_cast<double>(shape.scale));
      for (const int row : rows_to_compare(queries, random)) {
        const std::int64_t sees = untax::seen_keys(row, queries, keys, shape.causal);
        const untax::attended_row right =
            on_host.attend(q.part(query + row, 1, head * width, width), sees);
        const const_matrix matrix = out.part(query + row, 1, head * width, width);
        if (sees == 0) {
          const auto* bits = static_cast<const std::uint16_t*>(matrix.data);
          bad_zeros += static_cast<int>(
              std::count_if(bits, bits + width, [](std::uint16_t entry) { return entry != 0; }));
        }
        elements.add_row(std::span<const double>(untax::widened(matrix.data, width, shape.type)),
                         right.out, 6 * tolerance_of(shape.type),
                         0.1 / static_cast<double>(std::max<std::int64_t>(sees, 1)));
        const auto sum = static_cast<double>(sums_found[static_cast<std::size_t>(query + row) *
                                                            static_cast<std::size_t>(shape.heads) +
                                                        static_cast<std::size_t>(head)]);
        logarithms.add(sum, right.log_sum, logarithm_tolerance, 1);
      }
    }
  }
  EXPECT_EQ(bad_zeros, 0) << "rows that see nothing have to be zeros";
  EXPECT_LE(elements.relative_error(), tolerance_of(shape.type));
  EXPECT_LE(logarithms.relative_error(), logarithm_tolerance);
}

TEST(gpu_flash_attention, one_tile) {
  NEEDS_GPUS(1);
  expect_right({.head_dim = 128, .queries = 128, .keys = 176}, {}, attention_order::automatic, 1);
  expect_right({.head_dim = 128, .queries = 128, .keys = 352}, {}, attention_order::automatic, 2);
  expect_right({.head_dim = 128, .queries = 128, .keys = 1000}, {}, attention_order::automatic, 3);
}

TEST(gpu_flash_attention, lengths_that_are_no_multiples_of_tiles) {
  NEEDS_GPUS(1);
  for (const int width : {64, 128, 256}) {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
      for (const bool causal : {false, true}) {
        for (const auto& [queries, keys] : {std::pair{1, 1},
                                            {1, 300},
                                            {64, 64},
                                            {65, 79},
                                            {128, 80},
                                            {129, 81},
                                            {192, 128},
                                            {193, 129},
                                            {300, 1},
                                            {333, 777},
                                            {700, 177},
                                            {512, 512}}) {
          expect_right({.heads = 2,
                        .kv_heads = 1,
                        .head_dim = width,
                        .queries = queries,
                        .keys = keys,
                        .causal = causal,
                        .type = type},
                       {}, attention_order::automatic, 5);
        }
      }
    }
  }
}

TEST(gpu_flash_attention, empty_problems) {
  NEEDS_GPUS(1);
  for (const bool causal : {false, true}) {
    expect_right({.batch = 2, .queries = 0, .keys = 100, .causal = causal}, {},
                 attention_order::automatic, 6);
    expect_right({.batch = 2, .queries = 100, .keys = 0, .causal = causal}, {},
                 attention_order::automatic, 7);
    expect_right({.batch = 0, .queries = 100, .keys = 100, .causal = causal}, {},
                 attention_order::automatic, 8);
  }
}

TEST(gpu_flash_attention, more_tiles_than_multiprocessors) {
  NEEDS_GPUS(1);
  for (const attention_order how :
       {attention_order::automatic, attention_order::head_first, attention_order::block_first,
        attention_order::group_first, attention_order::sections}) {
    for (const bool causal : {false, true}) {
      for (const int width : {64, 128, 256}) {
        expect_right({.batch = 3,
                      .heads = 12,
                      .kv_heads = 3,
                      .head_dim = width,
                      .queries = 1300,
                      .keys = 1100,
                      .causal = causal},
                     {}, how, 9);
      }
    }
  }
}

TEST(gpu_flash_attention, random_sequences) {
  NEEDS_GPUS(1);
  const unsigned seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < cases(60); ++round) {
    flash_shape shape{.batch = number(1, 6),
                      .kv_heads = number(1, 4),
                      .head_dim = 64 << number(0, 2),
                      .causal = number(0, 1) == 1,
                      .type = number(0, 1) == 1 ? dtype::bf16 : dtype::f16};
    shape.heads = shape.kv_heads * number(1, 5);
    const int most = 1 << number(0, 10);
    std::vector<int> queries;
    std::vector<int> keys;
    for (int b = 0; b < shape.batch; ++b) {
      queries.push_back(number(0, 4) == 0 ? 0 : number(1, most));
      keys.push_back(number(0, 4) == 0 ? 0 : number(1, most));
    }
    shape.queries = *std::max_element(queries.begin(), queries.end());
    shape.keys = *std::max_element(keys.begin(), keys.end());
    sequences lengths;
    if (number(0, 3) > 0) lengths = {begins_of(queries), begins_of(keys)};
    const auto how = static_cast<attention_order>(number(0, 4));
    expect_right(shape, lengths, how, seed + static_cast<unsigned>(round));
    if (HasFailure()) break;
  }
}

/// Values of a sequence must not reach another one, not even through zero weights.
TEST(gpu_flash_attention, infinities_stay_in_their_sequence) {
  NEEDS_GPUS(1);
  const stream on;
  flash_shape shape{.batch = 2, .queries = 50, .keys = 50};
  shape.scale = 0.1F;
  rows_of_heads q(100, 128, shape.type, on);
  rows_of_heads k(100, 128, shape.type, on);
  rows_of_heads v(100, 128, shape.type, on);
  rows_of_heads out(100, 128, shape.type, on);
  q.fill(1);
  k.fill(2);
  v.fill(3);
  const std::size_t half = 50 * static_cast<std::size_t>(v.stride());
  for (const rows_of_heads* m : {&v, &k})
    ok(cudaMemsetAsync(m->device() + half, 0xff, 2 * half, on.get()));
  const flash_runner op(shape, attention_order::automatic);
  op.run({.query_rows = 100,
          .key_rows = 100,
          .queries = q.device(),
          .keys = k.device(),
          .values = v.device(),
          .out = out.device(),
          .queries_stride = q.stride(),
          .keys_stride = k.stride(),
          .values_stride = v.stride(),
          .out_stride = out.stride()},
         on.get());
  ok(cudaStreamSynchronize(on.get()));
  out.fetch();
  for (int row = 0; row < 50; ++row) {
    const auto* bits = static_cast<const std::uint16_t*>(out.part(row, 1, 0, 128).data);
    for (int j = 0; j < 128; ++j)
      ASSERT_TRUE(std::isfinite(static_cast<float>(std::bit_cast<untax::bf16>(bits[j]))))
          << row << ", " << j;
  }
}

TEST(gpu_flash_attention, equals_the_host) {
  NEEDS_GPUS(1);
  const untax::flash_attention_problem p{.batch = 2,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_dim = 64,
                                         .queries = 70,
                                         .keys = 90,
                                         .causal = true,
                                         .type = dtype::f16};
  std::vector<float> right_sums(std::size_t{140} * 4);
  const auto operands = [&](std::uint16_t* q, std::uint16_t* k, std::uint16_t* v,
                            std::uint16_t* out, std::int64_t room) {
    const auto m = [&](std::uint16_t* data, std::int64_t rows, std::int64_t columns) {
      return matrix{data, p.type, rows, columns, columns + room};
    };
    return untax::flash_attention_operands{.q = as_const(m(q, 140, 256)),
                                           .keys = as_const(m(k, 180, 128)),
                                           .values = as_const(m(v, 180, 128)),
                                           .out = m(out, 140, 256)};
  };
  run_gpus(
      1,
      [&](untax::world& w) {
        const stream on;
        rows_of_heads q(140, 256, p.type, on);
        rows_of_heads k(180, 128, p.type, on);
        rows_of_heads v(180, 128, p.type, on);
        rows_of_heads out(140, 256, p.type, on);
        q.fill(1);
        k.fill(2);
        v.fill(3);
        out.poison();
        ok(cudaStreamSynchronize(on.get()));
        auto given = operands(q.device(), k.device(), v.device(), out.device(), 8);
        const on_device<float> sums(right_sums.size());
        given.log_sums = sums.data();
        untax::flash_attention(w, p).run(given);
        out.fetch();
        const std::vector<float> found_sums = values(sums.data(), right_sums.size(), on);
        std::vector<std::uint16_t> inputs[] = {q.bits(), k.bits(), v.bits(), out.bits()};
        untax::run_threads(1, [&](untax::world& host) {
          auto expected =
              operands(inputs[0].data(), inputs[1].data(), inputs[2].data(), inputs[3].data(), 8);
          expected.log_sums = right_sums.data();
          untax::flash_attention(host, p).run(expected);
        });
        // Both are rounded.
        untax::deviation elements(tolerance_of(p.type));
        for (std::size_t i = 0; i < inputs[3].size(); i += 264) {
          const std::vector<double> right = untax::widened(&inputs[3][i], 256, p.type);
          elements.add_row(std::span<const double>(untax::widened(&out.bits()[i], 256, p.type)),
                           right, 6 * tolerance_of(p.type), 0);
        }
        EXPECT_LE(elements.relative_error(), tolerance_of(p.type));
        untax::deviation logarithms(logarithm_tolerance);
        for (std::size_t i = 0; i < right_sums.size(); ++i)
          logarithms.add(static_cast<double>(found_sums[i]), static_cast<double>(right_sums[i]),
                         logarithm_tolerance, 1);
        EXPECT_LE(logarithms.relative_error(), logarithm_tolerance);
        auto crooked = given;
        crooked.q.stride = 260;
        expect_error(error_of([&] { untax::flash_attention(w, p).run(crooked); }),
                     untax::errc::invalid_argument, {"q lies at", "multiples of 16"});
      },
      gpu_world());
}

TEST(gpu_flash_attention, refusals) {
  NEEDS_GPUS(1);
  using untax::errc;
  const auto refusal = [](const flash_shape& s) {
    return error_of([&] { const flash_runner op(s, attention_order::automatic); });
  };
  expect_error(refusal({.head_dim = 96}), errc::unsupported, {"heads of 64, 128 and 256", "96"});
  expect_error(refusal({.type = dtype::f32}), errc::unsupported, {"not fp32"});
  expect_error(refusal({.heads = 4, .kv_heads = 3}), errc::invalid_argument, {"3 heads of keys"});
  expect_error(refusal({.scale = 0}), errc::invalid_argument, {"positive scale"});
}

}  // namespace
