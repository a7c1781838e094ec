// What follows a projection to queries, keys and values, on one GPU: random problems against the
// host, tokens that are out of range, two streams, graphs, and kernels that start early.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/rope_append.hpp>
#include <untax/ops/rope_table.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"
#include "rows_of_heads.hpp"

namespace {

using namespace gpu_test;
using untax::dtype;
using untax::matrix;
using untax::rope_append;
using untax::rope_append_operands;
using untax::rope_append_problem;
using untax::stream_ref;

constexpr std::uint16_t poison = 0xffff;

/// Rows of 2-byte elements on the host and on the GPU.
struct rows {
  std::int64_t count;
  std::int64_t columns;
  std::int64_t stride;
  dtype type;
  std::vector<std::uint16_t> bits;
  on_device<std::uint16_t> device;

  rows(dtype element_type, std::int64_t row_count, std::int64_t column_count, std::int64_t room)
      : count(row_count),
        columns(column_count),
        stride(column_count + room),
        type(element_type),
        bits(static_cast<std::size_t>(count * stride), poison),
        device(bits.size()) {}
  [[nodiscard]] matrix view(std::uint16_t* at) const { return {at, type, count, columns, stride}; }
  void fill(std::uint64_t seed, const stream& on) {
    untax::random_matrix{seed}.fill(view(bits.data()), {0, count}, {0, columns});
    store(on);
  }
  void store(const stream& on) const { copy(device.data(), bits.data(), bits.size(), on); }
  void clear(const stream& on) const {
    ok(cudaMemsetAsync(device.data(), 0xff, 2 * bits.size(), on.get()));
  }
  [[nodiscard]] std::vector<std::uint16_t> found(const stream& on) const {
    return values(device.data(), bits.size(), on);
  }
  [[nodiscard]] std::vector<double> row(const std::vector<std::uint16_t>& memory,
                                        std::int64_t number) const {
    return untax::widened(&memory[static_cast<std::size_t>(number * stride)], columns, type);
  }
};

/// A problem with operands on the current GPU. One token in four is out of range if `strays`.
class append_case {
 public:
  append_case(const rope_append_problem& p, std::uint64_t seed, bool strays, const stream& on)
      : problem(p),
        qkv_(p.type, p.tokens, (p.heads + 2 * p.kv_heads) * p.head_dim, 8 * (seed % 3)),
        bias_(p.type, 1, qkv_.columns, 0),
        q_norm_(p.type, 1, p.head_dim, 0),
        k_norm_(p.type, 1, p.head_dim, 0),
        keys_(p.type, p.page_size > 0 ? p.pages * p.page_size : p.batch * p.keys,
              p.kv_heads * p.head_dim, 8 * (seed % 2)),
        values_(p.type, keys_.count, keys_.columns, keys_.stride - keys_.columns),
        q_(p.type, p.tokens, p.heads * p.head_dim, 0),
        random_(seed) {
    std::uint64_t next = seed * 8;
    for (rows* each : {&qkv_, &bias_, &q_norm_, &k_norm_}) each->fill(++next, on);
    table_ = untax::rope_table({.rotated = p.rotated == 0 ? p.head_dim : p.rotated}, p.positions);
    place(strays);
    rotations_ = std::make_unique<on_device<float>>(table_, on);
    position_ = std::make_unique<on_device<std::int32_t>>(places_.position, on);
    sequence_ = std::make_unique<on_device<std::int32_t>>(places_.sequence, on);
    page_table_ = std::make_unique<on_device<std::int32_t>>(places_.page_table, on);
    clear(on);
  }

  [[nodiscard]] rope_append_operands operands() {
    return {.qkv = as_const(qkv_.view(qkv_.device.data())),
            .bias = problem.bias ? bias_.device.data() : nullptr,
            .q_norm = problem.norm ? q_norm_.device.data() : nullptr,
            .k_norm = problem.norm ? k_norm_.device.data() : nullptr,
            .rotations = rotations_->data(),
            .position = position_->data(),
            .sequence = sequence_->data(),
            .page_table = problem.page_size > 0 ? page_table_->data() : nullptr,
            .keys = keys_.view(keys_.device.data()),
            .values = values_.view(values_.device.data()),
            .q = q_.view(q_.device.data())};
  }
  /// Results become NaN.
  void clear(const stream& on) const {
    for (const rows* each : {&keys_, &values_, &q_}) each->clear(on);
  }
  /// Other places, in the same memory.
  void move(const stream& on) {
    place(false);
    copy(position_->data(), places_.position.data(), places_.position.size(), on);
    copy(sequence_->data(), places_.sequence.data(), places_.sequence.size(), on);
    copy(page_table_->data(), places_.page_table.data(), places_.page_table.size(), on);
  }
  [[nodiscard]] std::vector<std::uint16_t> result_bits(const stream& on) const {
    std::vector<std::uint16_t> bits;
    for (const rows* each : {&keys_, &values_, &q_}) {
      const auto found = each->found(on);
      bits.insert(bits.end(), found.begin(), found.end());
    }
    return bits;
  }

  /// Compares with the host, whose results may be rounded to the neighbour. Tokens that are out of
  /// range have zeros as their q, and nothing else is written.
  void expect_right(const stream& on) {
    const std::vector<std::uint16_t> keys = keys_.found(on);
    const std::vector<std::uint16_t> found_values = values_.found(on);
    const std::vector<std::uint16_t> q = q_.found(on);
    std::vector<std::uint16_t> right_keys(keys.size(), poison);
    std::vector<std::uint16_t> right_values = right_keys;
    std::vector<std::uint16_t> right_q(q.size());
    run_on_host(right_keys, right_values, right_q);
    expect_near(keys_, keys, right_keys, "keys");
    expect_near(values_, found_values, right_values, "values");
    expect_near(q_, q, right_q, "q");
  }

  rope_append_problem problem;

 private:
  struct token_places {
    std::vector<std::int32_t> position, sequence, page_table;
    std::vector<std::int64_t> in_range;  ///< tokens
  };

  [[nodiscard]] std::int32_t pick(const std::vector<std::int64_t>& from) {
    return static_cast<std::int32_t>(from[random_() % from.size()]);
  }

  void place(bool strays) {
    const rope_append_problem& p = problem;
    places_ = {};
    const std::int64_t most = std::min(p.keys, p.positions);
    std::vector<std::int64_t> cells(static_cast<std::size_t>(p.batch * most));
    std::iota(cells.begin(), cells.end(), 0);
    std::shuffle(cells.begin(), cells.end(), random_);
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const std::int64_t drawn = cells[static_cast<std::size_t>(t)];
      places_.position.push_back(static_cast<std::int32_t>(drawn % most));
      places_.sequence.push_back(static_cast<std::int32_t>(drawn / most));
    }
    const std::int64_t each = p.page_size > 0 ? (p.keys + p.page_size - 1) / p.page_size : 0;
    if (p.page_size > 0) {
      places_.page_table.resize(static_cast<std::size_t>(p.pages));
      std::iota(places_.page_table.begin(), places_.page_table.end(), 0);
      std::shuffle(places_.page_table.begin(), places_.page_table.end(), random_);
      places_.page_table.resize(static_cast<std::size_t>(p.batch * each));
      // A page that does not exist, and all tokens of it are out of range.
      if (strays) places_.page_table[random_() % places_.page_table.size()] = pick({-1, p.pages});
    }
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      auto& position = places_.position[static_cast<std::size_t>(t)];
      auto& sequence = places_.sequence[static_cast<std::size_t>(t)];
      bool in_range = true;
      if (p.page_size > 0) {
        const std::int32_t page =
            places_.page_table[static_cast<std::size_t>(sequence * each + position / p.page_size)];
        in_range = page >= 0 && page < p.pages;
      }
      if (strays && random_() % 4 == 0) {
        in_range = false;
        if (random_() % 2 == 0) {
          position = pick({-1, most, INT32_MIN, INT32_MAX});
        } else {
          sequence = pick({-1, p.batch, INT32_MIN, INT32_MAX});
        }
      }
      if (in_range) places_.in_range.push_back(t);
    }
  }

  /// Of the tokens that are in range, with what is theirs in rows of their own.
  void run_on_host(std::vector<std::uint16_t>& keys, std::vector<std::uint16_t>& found_values,
                   std::vector<std::uint16_t>& q) {
    rope_append_problem p = problem;
    p.tokens = static_cast<std::int64_t>(places_.in_range.size());
    rows some(p.type, p.tokens, qkv_.columns, 0);
    rows some_q(p.type, p.tokens, q_.columns, 0);
    std::vector<std::int32_t> position;
    std::vector<std::int32_t> sequence;
    std::vector<std::int32_t> page_table = places_.page_table;
    for (std::int32_t& page : page_table) page = page < 0 || page >= p.pages ? 0 : page;
    for (std::size_t i = 0; i < places_.in_range.size(); ++i) {
      const auto t = static_cast<std::size_t>(places_.in_range[i]);
      std::copy_n(&qkv_.bits[t * static_cast<std::size_t>(qkv_.stride)], qkv_.columns,
                  &some.bits[i * static_cast<std::size_t>(some.stride)]);
      position.push_back(places_.position[t]);
      sequence.push_back(places_.sequence[t]);
    }
    untax::run_threads(1, [&](untax::world& w) {
      rope_append(w, p).run({.qkv = as_const(some.view(some.bits.data())),
                             .bias = p.bias ? bias_.bits.data() : nullptr,
                             .q_norm = p.norm ? q_norm_.bits.data() : nullptr,
                             .k_norm = p.norm ? k_norm_.bits.data() : nullptr,
                             .rotations = table_.data(),
                             .position = position.data(),
                             .sequence = sequence.data(),
                             .page_table = p.page_size > 0 ? page_table.data() : nullptr,
                             .keys = keys_.view(keys.data()),
                             .values = values_.view(found_values.data()),
                             .q = some_q.view(some_q.bits.data())});
    });
    for (std::size_t i = 0; i < places_.in_range.size(); ++i) {
      std::copy_n(&some_q.bits[i * static_cast<std::size_t>(q_.columns)], q_.columns,
                  &q[static_cast<std::size_t>(places_.in_range[i] * q_.stride)]);
    }
  }

  static void expect_near(const rows& like, const std::vector<std::uint16_t>& found,
                          const std::vector<std::uint16_t>& right, const char* name) {
    SCOPED_TRACE(name);
    const double neighbour = 2 * untax::roundoff_of(like.type);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i) % like.stride;
      const bool is_exact = right[i] == poison || column >= like.columns;
      if (is_exact) {
        ASSERT_EQ(found[i], column >= like.columns ? poison : right[i]) << i;
        continue;
      }
      const double a = untax::widened(&found[i], 1, like.type).front();
      const double b = untax::widened(&right[i], 1, like.type).front();
      ASSERT_LE(std::abs(a - b), neighbour * std::abs(b) + 1e-5) << i << ": " << a << ", " << b;
    }
  }

  rows qkv_, bias_, q_norm_, k_norm_, keys_, values_, q_;
  std::mt19937_64 random_;
  token_places places_;
  std::vector<float> table_;
  std::unique_ptr<on_device<float>> rotations_;
  std::unique_ptr<on_device<std::int32_t>> position_, sequence_, page_table_;
};

stream_ref ref(const stream& on) { return stream_ref{on.get()}; }

rope_append_problem random_problem(std::mt19937_64& random) {
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  constexpr std::int64_t widths[] = {16, 48, 64, 80, 96, 128, 192, 256};
  rope_append_problem p{.heads = number(1, 9), .kv_heads = number(1, 4)};
  p.head_dim = widths[number(0, 7)];
  if (number(0, 1) == 0) p.rotated = 16 * number(1, p.head_dim / 16);
  p.batch = number(1, 6);
  p.keys = number(1, 90);
  p.positions = number(1, 100);
  p.tokens = number(0, p.batch * std::min(p.keys, p.positions));
  if (number(0, 1) == 0) {
    p.page_size = number(1, 20);
    p.pages = p.batch * ((p.keys + p.page_size - 1) / p.page_size) + number(0, 3);
  }
  p.type = number(0, 1) == 0 ? dtype::bf16 : dtype::f16;
  p.interleaved = number(0, 1) == 1;
  p.bias = number(0, 1) == 1;
  p.norm = number(0, 1) == 1;
  p.norm_offset = static_cast<float>(number(0, 1));
  return p;
}

constexpr rope_append_problem usual{.tokens = 33,
                                    .heads = 8,
                                    .kv_heads = 2,
                                    .head_dim = 128,
                                    .batch = 5,
                                    .keys = 64,
                                    .page_size = 16,
                                    .pages = 23,
                                    .positions = 64,
                                    .bias = true,
                                    .norm = true};

TEST(gpu_rope_append, of_random_problems_equals_the_host) {
  NEEDS_GPUS(1);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  run_gpus(
      1,
      [&](untax::world& w) {
        const stream on;
        std::mt19937_64 random(seed);
        for (int round = 0; round < cases(40); ++round) {
          SCOPED_TRACE(fmt::format("round {}", round));
          append_case c(random_problem(random), seed + static_cast<unsigned>(round),
                        random() % 2 == 0, on);
          rope_append op(w, c.problem, {.constant_weights = random() % 2 == 0});
          op.run(c.operands(), ref(on));
          ok(cudaStreamSynchronize(on.get()));
          c.expect_right(on);
          const auto bits = c.result_bits(on);
          c.clear(on);
          ok(cudaStreamSynchronize(on.get()));
          op.run(c.operands());  // returns when all is written
          EXPECT_TRUE(bits == c.result_bits(on)) << "another run gives other bits";
          if (::testing::Test::HasFatalFailure()) return;
        }
      },
      gpu_world());
}

TEST(gpu_rope_append, runs_on_two_streams_at_the_same_time) {
  NEEDS_GPUS(1);
  run_gpus(
      1,
      [](untax::world& w) {
        const stream on[2];
        append_case first(usual, 1, false, on[0]);
        append_case second(usual, 2, true, on[1]);
        rope_append op(w, usual);
        for (int round = 0; round < 20; ++round) {
          first.clear(on[0]);
          second.clear(on[1]);
          if (round % 2 == 0) hold(on[round / 2 % 2].get(), 100us);
          op.run(first.operands(), ref(on[0]));
          op.run(second.operands(), ref(on[1]));
          ok(cudaStreamSynchronize(on[0].get()));
          ok(cudaStreamSynchronize(on[1].get()));
          first.expect_right(on[0]);
          second.expect_right(on[1]);
        }
      },
      gpu_world());
}

TEST(gpu_rope_append, replays_append_at_the_current_positions) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  run_gpus(
      1,
      [](untax::world& w) {
        const stream on;
        append_case c(usual, 3, false, on);
        rope_append op(w, usual);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t launchable = nullptr;
        ok(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
        op.run(c.operands(), ref(on));
        ok(cudaStreamEndCapture(on.get(), &graph));
        ok(cudaGraphInstantiate(&launchable, graph, 0));
        for (int replay = 0; replay < 5; ++replay) {
          c.move(on);
          c.clear(on);
          ok(cudaGraphLaunch(launchable, on.get()));
          ok(cudaStreamSynchronize(on.get()));
          c.expect_right(on);
        }
        ok(cudaGraphExecDestroy(launchable));
        ok(cudaGraphDestroy(graph));
      },
      gpu_world());
}

/// Each run reads as its qkv what the run ahead writes as q, and starts before that has ended. With
/// one position, whose angles are zero, all runs but the first copy.
TEST(gpu_rope_append, reads_what_the_kernel_ahead_writes) {
  NEEDS_GPUS(1);
  run_gpus(
      1,
      [](untax::world& w) {
        const stream on;
        constexpr std::int64_t tokens = 512;
        constexpr std::int64_t width = 64;
        constexpr int runs = 12;
        const on_device<float> rotations(untax::rope_table({.rotated = width}, 1), on);
        const on_device<std::int32_t> position(std::vector<std::int32_t>(tokens, 0), on);
        rows keys(dtype::bf16, tokens, width, 0);
        rows cached_values(dtype::bf16, tokens, width, 0);
        std::vector<std::unique_ptr<rope_append>> ops;
        std::vector<std::unique_ptr<rows>> chain;
        chain.push_back(std::make_unique<rows>(dtype::bf16, tokens, (runs + 1) * 2 * width, 0));
        for (int i = 0; i < runs; ++i) {
          const std::int64_t heads = (runs - i) * 2;
          ops.push_back(std::make_unique<rope_append>(
              w, rope_append_problem{
                     .tokens = tokens, .heads = heads, .head_dim = width, .batch = tokens}));
          chain.push_back(std::make_unique<rows>(dtype::bf16, tokens, heads * width, 0));
        }
        for (std::uint64_t round = 0; round < 20; ++round) {
          chain.front()->fill(round, on);
          for (std::size_t i = 1; i < chain.size(); ++i) chain[i]->clear(on);
          hold(on.get(), 50us);
          for (std::size_t i = 0; i < ops.size(); ++i) {
            ops[i]->run({.qkv = as_const(chain[i]->view(chain[i]->device.data())),
                         .rotations = rotations.data(),
                         .position = position.data(),
                         .keys = keys.view(keys.device.data()),
                         .values = cached_values.view(cached_values.device.data()),
                         .q = chain[i + 1]->view(chain[i + 1]->device.data())},
                        ref(on));
          }
          const auto found = chain.back()->found(on);
          for (std::int64_t t = 0; t < tokens; ++t) {
            const std::vector<double> q = chain.back()->row(found, t);
            std::vector<double> right = chain.front()->row(chain.front()->bits, t);
            right.resize(q.size());
            ASSERT_EQ(q, right) << "token " << t;
          }
        }
      },
      gpu_world());
}

TEST(gpu_rope_append, refusals) {
  NEEDS_GPUS(1);
  run_gpus(
      1,
      [](untax::world& w) {
        using untax::errc;
        const auto plan = [&](const rope_append_problem& p) {
          return error_of([&] { const rope_append op(w, p); });
        };
        expect_error(plan({.type = dtype::f32}), errc::unsupported, {"not fp32"});
        expect_error(plan({.head_dim = 272}), errc::unsupported, {"up to 256", "272"});
        expect_error(plan({.head_dim = 68, .rotated = 16}), errc::unsupported, {"of 8", "68"});
        expect_error(plan({.head_dim = 128, .rotated = 24}), errc::unsupported, {"of 16", "24"});
        expect_error(plan({.tokens = 1 << 29}), errc::unsupported, {"tokens at most"});

        const stream on;
        append_case c(usual, 4, false, on);
        rope_append op(w, usual);
        const auto refused = [&](const auto& change, const std::vector<std::string>& parts) {
          rope_append_operands o = c.operands();
          change(o);
          expect_error(error_of([&] { op.run(o, ref(on)); }), errc::invalid_argument, parts);
        };
        refused([](auto& o) { o.qkv.stride += 4; }, {"qkv lies at", "multiples of 16"});
        refused([](auto& o) { o.keys.stride += 4; }, {"keys lies at", "multiples of 16"});
        refused([](auto& o) { o.bias = static_cast<const char*>(o.bias) + 8; }, {"bias"});
        std::vector<std::int32_t> here(33);
        refused([&](auto& o) { o.position = here.data(); }, {"position"});
      },
      gpu_world());
}

}  // namespace
