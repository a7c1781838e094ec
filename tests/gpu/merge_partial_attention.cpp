// merge_partial_attention on GPUs: random shapes against fp64, poisoned results, parts that are
// empty and hold NaN, all heads to all and to each its share, tokens that vary, equal bits.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/merge_partial_attention.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/common/deviation.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace {

using namespace gpu_test;
using untax::const_matrix;
using untax::matrix;
using untax::merge_partial_attention;
using untax::merge_partial_attention_options;
using untax::merge_partial_attention_problem;
using untax::merge_workload;
using untax::merged_heads;

class number_source {
 public:
  explicit number_source(std::uint64_t seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

 private:
  std::mt19937_64 random_;
};

/// Rows of any length, as many as the reference is made of within a moment.
merge_partial_attention_problem random_problem(number_source& number) {
  constexpr std::int64_t most_elements = 60'000;
  merge_partial_attention_problem p;
  p.type = static_cast<dtype>(number(0, 2));
  constexpr std::int64_t usual[] = {64, 128, 256, 512, 576};
  const std::int64_t chunk = untax::chunk_elements(p.type);
  p.head_dim = number(0, 1) == 0   ? usual[number(0, 4)]
               : number(0, 3) == 0 ? chunk * number(1, 4096 / chunk)
                                   : chunk * number(1, 40);
  const std::int64_t rows = std::max<std::int64_t>(1, most_elements / p.head_dim);
  p.heads = number(1, std::min<std::int64_t>(rows, number(0, 1) == 0 ? 16 : 128));
  p.tokens = number(1, std::max<std::int64_t>(1, rows / p.heads));
  p.get = number(0, 1) == 0 ? merged_heads::all : merged_heads::own;
  p.log2 = number(0, 2) == 0;
  return p;
}

std::string text_of(const world& w, const merge_partial_attention_problem& p, int blocks,
                    std::uint64_t seed) {
  return fmt::format("seed {}, rank {} of {}, {}, {} blocks", seed, w.rank(), w.size(), describe(p),
                     blocks);
}

/// The bits that ranks have.
class known_bits {
 public:
  /// Of all heads: those of other ranks are the same.
  void expect_same(const std::vector<std::byte>& bits) {
    const std::scoped_lock lock(mutex_);
    if (bits_.empty()) bits_ = bits;
    EXPECT_TRUE(bits == bits_);
  }
  void forget() {
    const std::scoped_lock lock(mutex_);
    bits_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::byte> bits_;
};

TEST(gpu_merge_partial_attention, is_right_for_random_shapes) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const int count = cases(24);
  known_bits known;
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        number_source number(seed);
        number_source stalls(seed + 1 + static_cast<std::uint64_t>(w.rank()));
        const stream s;
        for (int i = 0; i < count; ++i) {
          const auto p = random_problem(number);
          const auto blocks = static_cast<int>(number(0, 2) == 0 ? number(1, 8) : 0);
          SCOPED_TRACE(text_of(w, p, blocks, seed));
          merge_workload load(w, p, {.workers = blocks}, seed);
          for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
            load.refresh(seed + 8 * static_cast<std::uint64_t>(i) + epoch);
            load.poison_result();
            stall(s, stalls(0, 200));
            load.run(p.tokens, {s.get()});
            // The same again, while others may still be at the first one.
            if (epoch % 2 == 1) load.run(p.tokens, {s.get()});
            EXPECT_TRUE(s.done());
            w.check();
            EXPECT_LE(load.relative_error(), tolerance_of(p)) << "epoch " << epoch;
            if (p.get == merged_heads::all) known.expect_same(load.bits());
            w.barrier();
            known.forget();
            w.barrier();
          }
          if (::testing::Test::HasFailure()) return;
        }
      },
      roomy_world());
}

TEST(gpu_merge_partial_attention, takes_any_number_of_tokens) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const int count = cases(60);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        number_source number(seed);
        number_source stalls(seed + 1 + static_cast<std::uint64_t>(w.rank()));
        const stream s;
        for (const merged_heads get : {merged_heads::all, merged_heads::own}) {
          merge_partial_attention_problem p{
              .tokens = 200, .heads = number(1, 12), .head_dim = 8 * number(1, 16), .get = get};
          const auto blocks = static_cast<int>(number(0, 6));
          SCOPED_TRACE(text_of(w, p, blocks, seed));
          merge_workload load(w, p, {.workers = blocks, .varying_tokens = true}, seed);
          for (int i = 0; i < count; ++i) {
            const std::int64_t tokens = number(0, 1) == 0 ? number(0, 8) : number(0, p.tokens);
            if (i % 4 == 0) load.refresh(seed + static_cast<std::uint64_t>(i));
            load.poison_result();
            stall(s, stalls(0, 100));
            load.run(tokens, {s.get()});
            ASSERT_TRUE(s.done());
            w.check();
            ASSERT_LE(load.relative_error(), tolerance_of(p)) << tokens << " tokens, run " << i;
          }
        }
      },
      roomy_world());
}

TEST(gpu_merge_partial_attention, has_the_same_bits_in_every_run_and_by_any_number_of_blocks) {
  NEEDS_GPUS(1);
  const merge_partial_attention_problem p{.tokens = 9, .heads = 12, .head_dim = 576};
  const int count = runs(50);
  known_bits known;
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        number_source stalls(static_cast<std::uint64_t>(w.rank()));
        for (const int blocks : {0, 1, 3}) {
          SCOPED_TRACE(text_of(w, p, blocks, 7));
          merge_workload load(w, p, {.workers = blocks}, 7);
          for (int i = 0; i < count; ++i) {
            load.poison_result();
            stall(s, stalls(0, 50));
            load.run(p.tokens, {s.get()});
            ASSERT_TRUE(s.done());
            w.check();
            known.expect_same(load.bits());
          }
        }
      },
      roomy_world());
}

TEST(gpu_merge_partial_attention, a_graph_has_the_tokens_that_it_was_captured_with) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  const std::uint64_t seed = std::random_device{}();
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        number_source number(seed);
        const stream s;
        const merge_partial_attention_problem p{.tokens = 64, .heads = 8, .head_dim = 128};
        SCOPED_TRACE(text_of(w, p, 0, seed));
        merge_workload load(w, p, {.varying_tokens = true}, seed);
        for (const std::int64_t tokens : {std::int64_t{64}, std::int64_t{5}}) {
          cudaGraph_t graph = nullptr;
          cudaGraphExec_t replay = nullptr;
          load.run(tokens, {s.get()});
          ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
          load.run(tokens, {s.get()});
          ok(cudaStreamEndCapture(s.get(), &graph));
          ok(cudaGraphInstantiate(&replay, graph, 0));
          ok(cudaGraphUpload(replay, s.get()));
          ASSERT_TRUE(s.done());
          w.barrier();
          for (int i = 0; i < 100; ++i) {
            load.poison_result();
            if (i % 3 == 0) load.run(tokens, {s.get()});
            ok(cudaGraphLaunch(replay, s.get()));
            ASSERT_TRUE(s.done());
            w.check();
            if (i % 10 != 0) continue;
            ASSERT_LE(load.relative_error(), tolerance_of(p));
          }
          ok(cudaGraphExecDestroy(replay));
          ok(cudaGraphDestroy(graph));
        }
      },
      roomy_world());
}

// The last rank gets no heads, so it waits for no parts: only the owners' retires hold it up.
TEST(gpu_merge_partial_attention, a_rank_without_heads_does_not_run_ahead) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        const merge_partial_attention_problem p{.tokens = 40,
                                                .heads = w.size() - 1,
                                                .head_dim = 128,
                                                .type = dtype::bf16,
                                                .get = merged_heads::own};
        merge_workload load(w, p, {}, 5);
        for (int epoch = 0; epoch < 20; ++epoch) {
          if (w.rank() == 0) stall(s, 2000);
          load.run(p.tokens, {s.get()});
        }
        EXPECT_TRUE(s.done());
        w.check();
        EXPECT_LE(load.relative_error(), tolerance_of(p));
        w.barrier();
      },
      roomy_world());
}

// One NaN has the bits that stand for a word that has not arrived.
TEST(gpu_merge_partial_attention, ends_with_nan_inputs) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        for (const dtype type : {dtype::f32, dtype::bf16}) {
          const merge_partial_attention_problem p{
              .tokens = 6, .heads = 4, .head_dim = 64, .type = type};
          merge_partial_attention op(w, p);
          const std::size_t bytes = std::size_t{24} * 64 * size_of(type);
          const auto parts = w.allocate<std::byte>(bytes, "parts");
          const auto out = w.allocate<std::byte>(bytes, "result");
          const auto logs = w.allocate<float>(48, "logarithms");
          ok(cudaMemsetAsync(parts.local(), 0xff, bytes, s.get()));
          ok(cudaMemsetAsync(out.local(), 0, bytes, s.get()));
          ok(cudaMemsetAsync(logs.local(), 0, 48 * sizeof(float), s.get()));
          EXPECT_TRUE(s.done());
          w.barrier();
          op.run({parts.local(), type, 24, 64}, {logs.local(), dtype::f32, 6, 4},
                 {out.local(), type, 24, 64}, {logs.local() + 24, dtype::f32, 6, 4}, {s.get()});
          EXPECT_TRUE(s.done());
          w.check();
          const auto actual = values(out.local(), bytes, s);
          for (const double element : untax::widened(actual.data(), 24 * 64, type))
            ASSERT_TRUE(std::isnan(element));
          w.barrier();
        }
      },
      roomy_world());
}

TEST(gpu_merge_partial_attention, names_the_missing_rank) {
  NEEDS_GPUS(2);
  const auto e = error_of([] {
    untax::run_gpus(
        2,
        [](world& w) {
          const merge_partial_attention_problem p{.tokens = 4, .heads = 2, .head_dim = 64};
          merge_workload load(w, p, {}, 1);
          const stream s;
          if (w.rank() == 0) {
            load.run(p.tokens, {s.get()});
            EXPECT_TRUE(s.done()) << "the context is broken";
            w.check();
          }
          // The kernel's wait has to be the first to reach the limit.
          std::this_thread::sleep_for(300ms);
          w.barrier();
        },
        gpu_world(500ms));
  });
  expect_error(e, untax::errc::timeout, {"merge_partial_attention acquire", "rank 1"});
}

TEST(gpu_merge_partial_attention, refuses_impossible_problems) {
  NEEDS_GPUS(1);
  std::vector<world> alone = world::local_gpus(1, roomy_world());
  world& w = alone[0];
  w.use_device();
  const auto refusal = [&](const merge_partial_attention_problem& p,
                           const merge_partial_attention_options& options) {
    return error_of([&] { merge_partial_attention(w, p, options); });
  };
  expect_error(
      refusal({.head_dim = 12}, {}), untax::errc::invalid_argument,
      {"rank 0: merge_partial_attention", "head_dim is 12", "multiple of 8", "16 would do"});
  expect_error(refusal({.head_dim = 6, .type = dtype::f32}, {}), untax::errc::invalid_argument,
               {"multiple of 4 in fp32"});
  expect_error(refusal({}, {.how = pattern::bulk_synchronous}), untax::errc::unsupported,
               {"bulk_synchronous", "fused_sequential"});
  expect_error(refusal({}, {.workers = 500}), untax::errc::invalid_argument, {"workers"});

  merge_partial_attention op(w, {.tokens = 2, .heads = 2, .head_dim = 64});
  const auto memory = w.allocate<untax::bf16>(2048, "memory");
  const auto logs = w.allocate<float>(16, "logs");
  std::vector<float> host(4);
  const auto rows = [&](std::ptrdiff_t at, std::int64_t stride = 64) {
    return matrix(memory.local() + at, dtype::bf16, 4, 64, stride);
  };
  const auto lse = [](float* at) { return matrix(at, dtype::f32, 2, 2); };
  const auto run = [&](const matrix& o, const matrix& o_lse, const matrix& out) {
    return error_of([&] { op.run(as_const(o), as_const(o_lse), out, lse(logs.local() + 8)); });
  };
  const auto wrong = untax::errc::invalid_argument;
  expect_error(run(rows(4), lse(logs.local()), rows(1024)), wrong,
               {"partial_o", "multiples of 16"});
  expect_error(run(rows(0, 68), lse(logs.local()), rows(1024)), wrong, {"partial_o", "136 bytes"});
  expect_error(run(rows(0), lse(host.data()), rows(1024)), wrong, {"partial_lse", "of the host"});
  expect_error(run(rows(0), lse(logs.local()), rows(128)), wrong, {"partial_o"});
}

}  // namespace
