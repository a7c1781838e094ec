// Runs of one operator on two streams, in graphs and without a stream, behind stalls of one stream
// or the other: every result has the bits of a run alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/ops/flash_attention.hpp>
#include <untax/ops/flash_decode.hpp>
#include <untax/ops/gemm_all_reduce.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/ops/merge_partial_attention.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "src/symmetric/cuda/graph.hpp"

namespace {

using namespace gpu_test;
using untax::bf16;
using untax::const_matrix;
using untax::errc;
using untax::extent;
using untax::matrix;
using untax::stream_ref;

/// One operator's run: of one of two sets of inputs, into a result.
using run_of_set = std::function<void(int set, std::byte* out, stream_ref on)>;

template <class T>
T* filled(world& w, const std::vector<T>& values) {
  const stream s;
  // An allocation has one size at all ranks, and shards have not.
  constexpr std::size_t most = 3U << 19U;
  T* const target = w.allocate<T>(std::max(values.size(), most), "values").local();
  copy(target, values.data(), values.size(), s);
  return target;
}

/// Random numbers from -1 to 1, others at each rank, twice.
class two_sets {
 public:
  two_sets(world& w, std::int64_t count) {
    for (int set = 0; set < 2; ++set) {
      std::mt19937_64 random(static_cast<std::uint64_t>(97 * count + 2 * w.rank() + set));
      std::vector<bf16> values;
      for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i)
        values.emplace_back(std::uniform_real_distribution<float>(-1, 1)(random));
      sets_[set] = filled(w, values);
    }
  }
  [[nodiscard]] const bf16* of(int set) const { return sets_[set]; }
  [[nodiscard]] const_matrix matrix_of(int set, const extent& size) const {
    return {of(set), size.rows, size.cols};
  }

 private:
  const bf16* sets_[2] = {};
};

matrix result_of(std::byte* out, const extent& size) {
  return {static_cast<void*>(out), dtype::bf16, size.rows, size.cols};
}
std::size_t bytes_of(const extent& size) { return static_cast<std::size_t>(size.elements()) * 2; }

/// An operator, run on two streams: stream i takes set i.
class trial {
 public:
  trial(world& w, std::string name, std::size_t bytes, run_of_set run)
      : w_(w),
        name_(std::move(name)),
        bytes_(bytes),
        apart_((std::max<std::size_t>(bytes, 1) + 511) / 512 * 512),
        places_(bytes > std::size_t{1} << 20 ? 3 : 20),
        run_(std::move(run)),
        results_(
            w.allocate_owned<std::byte>(2 * static_cast<std::size_t>(places_) * apart_, "results")),
        random_(static_cast<std::uint64_t>(w.rank() + 1)) {
    for (int set = 0; set < 2; ++set) {
      run_(set, at(set, 0), {});
      alone_[set] = values(at(set, 0), bytes_, streams_[set]);
    }
    EXPECT_TRUE(bytes_ == 0 || alone_[0] != alone_[1]) << name_;
  }

  void run_eagerly(int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      const int place = turn % places_;
      for (int set = 0; set < 2; ++set) {
        stall(set);
        launch(set, place);
      }
      if (turn % 89 == 88) {
        for (int set = 0; set < 2; ++set) run_(set, at(set, place), {});
      }
      if (place == places_ - 1 || turn == turns - 1) compare(place + 1, "eager");
    }
  }

  /// While stream 1 runs, stream 0 is captured; then graph and runs take turns. A second graph has
  /// runs on both streams.
  void run_in_graphs(int turns) {
    const auto busy = [&](int runs) {
      hold(streams_[1].get(), 3ms);
      for (int i = 0; i < runs; ++i) launch(1, 0);
    };
    busy(3);
    const untax::gpu::graph one(streams_[0].get(), [&] {
      for (int place = 0; place < 2; ++place) launch(0, place);
    });
    busy(3);
    const untax::gpu::event forked, joined;
    const untax::gpu::graph both(streams_[0].get(), [&] {
      ok(cudaEventRecord(forked.get(), streams_[0].get()));
      ok(cudaStreamWaitEvent(streams_[1].get(), forked.get(), 0));
      for (int set = 0; set < 2; ++set) launch(set, 2);
      launch(0, 0);
      ok(cudaEventRecord(joined.get(), streams_[1].get()));
      ok(cudaStreamWaitEvent(streams_[0].get(), joined.get(), 0));
    });
    for (int set = 0; set < 2; ++set) launch(set, 1);
    for (int turn = 0; turn < turns; ++turn) {
      stall(0);
      one.launch(streams_[0].get());
      stall(1);
      launch(1, turn % 2);
      if (turn % 3 == 0) both.launch(streams_[1].get());
      if (turn % 5 == 4) compare(3, "graphs");
    }
  }

 private:
  [[nodiscard]] std::byte* at(int set, int place) const {
    return results_->local() + static_cast<std::size_t>(set * places_ + place) * apart_;
  }
  void launch(int set, int place) {
    auto* const on = streams_[set].get();
    ok(cudaMemsetAsync(at(set, place), 0xff, bytes_, on));
    run_(set, at(set, place), on);
  }
  /// Ranks stall at other times, for up to 200 us.
  void stall(int set) {
    if (random_() % 16 == 0) hold(streams_[set].get(), std::chrono::microseconds(random_() % 200));
  }
  void compare(int places, const char* how) {
    for (const stream& s : streams_) EXPECT_TRUE(s.done()) << name_;
    w_.check();
    for (int set = 0; set < 2; ++set) {
      for (int place = 0; place < places; ++place)
        wrong_ += values(at(set, place), bytes_, streams_[set]) == alone_[set] ? 0 : 1;
    }
    ASSERT_EQ(wrong_, 0) << name_ << ", " << how << ": results with other bits";
  }

  world& w_;
  std::string name_;
  std::size_t bytes_;
  std::size_t apart_;
  int places_;
  run_of_set run_;
  untax::owned_symmetric<std::byte> results_;
  std::mt19937_64 random_;
  stream streams_[2];
  std::vector<std::byte> alone_[2];
  int wrong_ = 0;
};

void check(world& w, const std::string& name, std::size_t bytes, const run_of_set& run) {
  trial t(w, name, bytes, run);
  t.run_eagerly(runs(1000));
  if (sharing() == 1) t.run_in_graphs(runs(1000) / 5);
}

template <class Collective, class Problem>
void check_collective(world& w, const char* name, std::int64_t count) {
  for (const pattern how :
       {pattern::automatic, pattern::fused_sequential, pattern::fused_specialized}) {
    const Problem problem{.count = count, .type = dtype::bf16};
    const auto op = std::make_shared<Collective>(w, problem, untax::collective_options{.how = how});
    const std::int64_t in = Collective::in_count(problem, w.size(), w.rank());
    const std::int64_t out = Collective::out_count(problem, w.size(), w.rank());
    const two_sets values(w, in);
    check(w, fmt::format("{} of {} in {}", name, count, name_of(how)),
          static_cast<std::size_t>(out) * 2, [&](int set, std::byte* to, stream_ref on) {
            op->run({values.of(set), dtype::bf16, in}, {to, dtype::bf16, out}, on);
          });
  }
}

/// In every pattern that there is; `sizes` says those of a, weights and c.
template <class Operator, class Problem, class Sizes>
void check_gemm(world& w, const char* name, const Problem& problem, const Sizes& sizes) {
  for (const pattern how :
       {pattern::bulk_library, pattern::bulk_synchronous, pattern::producer_consumer,
        pattern::fused_sequential, pattern::fused_specialized}) {
    std::unique_ptr<Operator> op;
    try {
      op = std::make_unique<Operator>(w, problem, operator_options{.how = how});
    } catch (const untax::error& e) {
      EXPECT_EQ(name_of(e.code()), name_of(errc::unsupported)) << e.what();
      continue;
    }
    const auto [a, weights, c] = sizes;
    const two_sets of_a(w, a.elements());
    const two_sets of_weights(w, weights.elements());
    check(
        w, fmt::format("{} of {} rows in {}", name, problem.m, name_of(how)), bytes_of(c),
        [&, c_size = c, a_size = a, weights_size = weights](int set, std::byte* to, stream_ref on) {
          op->run(of_a.matrix_of(set, a_size), of_weights.matrix_of(set, weights_size),
                  result_of(to, c_size), on);
        });
  }
}

struct gemm_sizes {
  extent a;
  extent weights;
  extent c;
};

untax::world_options many_runs() {
  untax::world_options options = roomy_world();
  options.wait_limit = 10s;
  return options;
}

void on_all_gpus(const std::function<void(world&)>& body) {
  untax::run_gpus(gpus(), body, many_runs());
}

TEST(gpu_run_order, of_collectives_on_two_streams) {
  NEEDS_GPUS(2);
  on_all_gpus([](world& w) {
    for (const std::int64_t count : {3000, 400000}) {
      check_collective<untax::all_reduce, untax::all_reduce_problem>(w, "all_reduce", count);
      check_collective<untax::all_gather, untax::all_gather_problem>(w, "all_gather", count);
      check_collective<untax::reduce_scatter, untax::reduce_scatter_problem>(w, "reduce_scatter",
                                                                             count);
      check_collective<untax::all_to_all, untax::all_to_all_problem>(w, "all_to_all", count);
      check_collective<untax::broadcast, untax::broadcast_problem>(w, "broadcast", count);
    }
  });
}

TEST(gpu_run_order, of_gathers_and_scatters_on_two_streams) {
  NEEDS_GPUS(1);
  on_all_gpus([](world& w) {
    for (const std::int64_t m : {100, 600}) {
      constexpr std::int64_t n = 256;
      constexpr std::int64_t k = 512;
      const untax::all_gather_gemm_problem gather{.m = m, .n = n, .k = k, .type = dtype::bf16};
      check_gemm<untax::all_gather_gemm>(
          w, "all_gather_gemm", gather,
          gemm_sizes{untax::all_gather_gemm::a_shard(gather, w.size(), w.rank()), {n, k}, {m, n}});
      const untax::gemm_all_scatter_problem scatter{.m = m, .n = n, .k = k, .type = dtype::bf16};
      check_gemm<untax::gemm_all_scatter>(
          w, "gemm_all_scatter", scatter,
          gemm_sizes{
              {m, k}, untax::gemm_all_scatter::weights_shard(scatter, w.size(), w.rank()), {m, n}});
    }
  });
}

TEST(gpu_run_order, of_sums_on_two_streams) {
  NEEDS_GPUS(1);
  on_all_gpus([](world& w) {
    for (const dtype partials : {dtype::f32, dtype::bf16}) {
      for (const std::int64_t m : {100, 600}) {
        constexpr std::int64_t n = 256;
        constexpr std::int64_t k = 2048;
        const untax::gemm_reduce_scatter_problem scatter{
            .m = m, .n = n, .k = k, .type = dtype::bf16, .partials = partials};
        const auto depth = untax::gemm_reduce_scatter::k_shard(scatter, w.size(), w.rank());
        check_gemm<untax::gemm_reduce_scatter>(
            w, "gemm_reduce_scatter", scatter,
            gemm_sizes{{m, depth},
                       {n, depth},
                       untax::gemm_reduce_scatter::c_shard(scatter, w.size(), w.rank())});
        const untax::gemm_all_reduce_problem reduce{
            .m = m, .n = n, .k = k, .type = dtype::bf16, .partials = partials};
        check_gemm<untax::gemm_all_reduce>(w, "gemm_all_reduce", reduce,
                                           gemm_sizes{{m, depth}, {n, depth}, {m, n}});
      }
    }
  });
}

TEST(gpu_run_order, of_norms_on_two_streams) {
  NEEDS_GPUS(1);
  on_all_gpus([](world& w) {
    for (const int phases : {1, 2}) {
      const untax::all_reduce_norm_problem problem{.tokens = 37, .hidden = 1024};
      untax::all_reduce_norm op(w, problem, {.phases = phases});
      const extent size{problem.tokens, problem.hidden};
      const two_sets in(w, size.elements());
      const std::vector<bf16> ones(static_cast<std::size_t>(size.elements()), bf16(1.0F));
      const bf16* const residual = filled(w, ones);
      check(w, fmt::format("all_reduce_norm in {} phases", phases), 2 * bytes_of(size),
            [&](int set, std::byte* to, stream_ref on) {
              op.run({in.matrix_of(set, size), {residual, size.rows, size.cols}, residual},
                     {to, to + bytes_of(size)}, on);
            });
    }
  });
}

TEST(gpu_run_order, of_attention_on_two_streams) {
  NEEDS_GPUS(1);
  on_all_gpus([](world& w) {
    for (const pattern how : {pattern::automatic, pattern::bulk_synchronous,
                              pattern::producer_consumer, pattern::fused_sequential}) {
      const untax::flash_decode_problem problem{
          .batch = 4, .heads = 8, .kv_heads = 2, .head_dim = 128, .keys = 700};
      untax::flash_decode op(w, problem, {.how = how});
      const extent cache{problem.batch * problem.keys, problem.kv_heads * problem.head_dim};
      const extent rows{problem.batch * problem.heads, problem.head_dim};
      const two_sets q(w, rows.elements());
      const two_sets keys(w, cache.elements());
      const std::int32_t* const lengths = filled(w, std::vector<std::int32_t>{700, 0, 33, 512});
      check(w, fmt::format("flash_decode in {}", name_of(how)), bytes_of(rows),
            [&](int set, std::byte* to, stream_ref on) {
              op.run(q.matrix_of(set, rows),
                     {keys.matrix_of(set, cache), keys.matrix_of(1 - set, cache), lengths, nullptr},
                     result_of(to, rows), on);
            });
    }
    constexpr std::int64_t tokens = 33;
    constexpr std::int64_t heads = 8;
    untax::merge_partial_attention merge(w, {.tokens = tokens, .heads = heads, .head_dim = 128});
    const extent rows{tokens * heads, 128};
    const two_sets partial(w, rows.elements());
    const float* const lse = filled(w, std::vector<float>(tokens * heads, 0.5F));
    const const_matrix sums(lse, tokens, heads);
    check(w, "merge_partial_attention", bytes_of(rows) + tokens * heads * sizeof(float),
          [&](int set, std::byte* to, stream_ref on) {
            merge.run(partial.matrix_of(set, rows), sums, result_of(to, rows),
                      {static_cast<void*>(to + bytes_of(rows)), dtype::f32, tokens, heads}, on);
          });
    const untax::flash_attention_problem problem{
        .batch = 2, .heads = 16, .kv_heads = 4, .head_dim = 128, .queries = 1024, .keys = 1024};
    untax::flash_attention op(w, problem);
    const extent out{problem.batch * problem.queries, problem.heads * problem.head_dim};
    const extent cache{problem.batch * problem.keys, problem.kv_heads * problem.head_dim};
    const two_sets q(w, out.elements());
    const two_sets keys(w, cache.elements());
    check(w, "flash_attention", bytes_of(out), [&](int set, std::byte* to, stream_ref on) {
      untax::flash_attention_operands operands;
      operands.q = q.matrix_of(set, out);
      operands.keys = keys.matrix_of(set, cache);
      operands.values = keys.matrix_of(1 - set, cache);
      operands.out = result_of(to, out);
      op.run(operands, on);
    });
  });
}

}  // namespace
