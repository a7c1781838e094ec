#include "bench/suites/attention.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/core/half.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/attention_memory.hpp"
#include "bench/suites/cuda/attention_values.hpp"
#include "bench/suites/cuda/vectors.cuh"
#include "engines/bulk/communicator.hpp"
#include "engines/gpu/attention/attention_runner.hpp"
#include "ops/common/deviation.hpp"
#include "ops/flash_decode/backend.hpp"
#include "src/taxes/cuda/gpu_team.hpp"
#include "src/taxes/cuda/peak_rates.hpp"
#include "src/taxes/cuda/rank_graphs.hpp"

namespace untax::bench {
namespace {

constexpr std::size_t heap_bytes = std::size_t{3} << 30U;
constexpr double largest_error = 5e-3;
constexpr std::int64_t most_compared_rows = 16;

/// One configuration of a problem, at all ranks.
struct variant {
  std::string by;
  bool eager = false;
  std::vector<std::function<void(int run, cudaStream_t)>> launch;  ///< by rank
  std::vector<std::shared_ptr<void>> owners;                       ///< by rank
  std::unique_ptr<rank_graphs> graphs;                             ///< ends before the owners
};

class suite {
 public:
  suite(const attention_suite_options& options, gpu_team& team,
        const std::vector<attention_row>& rows)
      : options_(options), team_(team), memory_(team, rows) {
    for (int rank = 0; rank < team.size(); ++rank) everybody_.push_back(rank);
  }

  void measure(attention_row& row) {
    memory_.prepare(row);
    std::vector<variant> variants = plan(row);
    verify(row, variants);
    time(row, variants);
    // NCCL cannot end a communicator as long as a graph contains its calls.
    for (variant& v : variants) v.graphs.reset();
    team_.together([&](world& w) {  // operators end together
      for (auto v = variants.rbegin(); v != variants.rend(); ++v) {
        if (!v->owners.empty()) v->owners[static_cast<std::size_t>(w.rank())].reset();
      }
    });
  }

 private:
  [[nodiscard]] const attention_memory::of_rank& of(int rank) const { return memory_.at(rank); }

  std::vector<variant> plan(const attention_row& row) {
    std::vector<variant> variants;
    variants.push_back(local(row));
    if (team_.size() == 1) return variants;
    variants.push_back(whole(row, pattern::fused_sequential, false));
    if (bulk::nccl().there) {
      variants.push_back(whole(row, pattern::bulk_library, false));
      variants.push_back(whole(row, pattern::bulk_library, true));
    }
    variants.push_back(whole(row, pattern::bulk_synchronous, false));
    variants.push_back(whole(row, pattern::producer_consumer, false));
    return variants;
  }

  variant local(const attention_row& row) {
    variant v = named("local", false);
    team_.together([&](world& w) {
      const auto rank = static_cast<std::size_t>(w.rank());
      auto engine = std::make_shared<gpu::attention_runner>(
          w, "flash_decode", device_shape(row.problem), gpu::attention_sink::rows, 0);
      v.owners[rank] = engine;
      v.launch[rank] = [this, row, engine = engine.get(), rank = w.rank()](int run,
                                                                           cudaStream_t stream) {
        const attention_shard shard = memory_.shard_of(row, rank, run);
        engine->attend({.queries = of(rank).q.data(),
                        .keys = shard.keys.data,
                        .values = shard.values.data,
                        .out = of(rank).out.data(),
                        .queries_stride = row.problem.head_dim,
                        .keys_stride = shard.keys.stride,
                        .values_stride = shard.values.stride,
                        .out_stride = row.problem.head_dim,
                        .lengths = shard.lengths,
                        .page_table = shard.page_table},
                       {stream});
      };
    });
    return v;
  }
  variant whole(const attention_row& row, pattern how, bool eager) {
    variant v = named(std::string(name_of(how)) + (eager ? " eager" : ""), eager);
    team_.together([&](world& w) {
      const auto rank = static_cast<std::size_t>(w.rank());
      auto op = std::make_shared<flash_decode>(w, row.problem, flash_decode_options{.how = how});
      v.owners[rank] = op;
      v.launch[rank] = [this, row, op = op.get(), rank = w.rank()](int run, cudaStream_t stream) {
        op->run(as_const(attention_memory::rows_of(row, of(rank).q)),
                memory_.shard_of(row, rank, run), attention_memory::rows_of(row, of(rank).out),
                {stream});
      };
    });
    return v;
  }
  [[nodiscard]] variant named(std::string way, bool eager) const {
    variant v;
    v.by = std::move(way);
    v.eager = eager;
    v.launch.resize(everybody_.size());
    v.owners.resize(everybody_.size());
    return v;
  }

  /// Checks that the first pattern is right, and that the others have the same bits.
  void verify(const attention_row& row, const std::vector<variant>& variants) {
    bool first = true;
    for (const variant& v : variants) {
      if (v.by == "local") continue;
      const std::size_t bytes = static_cast<std::size_t>(2 * row.problem.batch * row.problem.heads *
                                                         row.problem.head_dim);
      team_.together([&](world& w) {
        const attention_memory::of_rank& mine = of(w.rank());
        cudaStream_t stream = team_.stream_of(w.rank());
        gpu::require(cudaMemsetAsync(mine.out.data(), 0xff, bytes, stream), "poisoning");
        v.launch[static_cast<std::size_t>(w.rank())](0, stream);
        // Loading the next kernel waits for kernels that wait for peers, so it may begin only now.
        gpu::require(cudaStreamSynchronize(stream), v.by);
        w.check();
        if (first) {
          gpu::require(cudaMemcpyAsync(mine.right.data(), mine.out.data(), bytes,
                                       cudaMemcpyDeviceToDevice, stream),
                       "cannot copy a result");
        }
        auto* const differences = static_cast<unsigned long long*>(mine.scratch.data());
        gpu::require(cudaMemsetAsync(differences, 0, sizeof *differences, stream),
                     "cannot clear a count");
        count_differences(mine.out.data(), mine.right.data(), bytes, differences, stream);
        unsigned long long wrong = 0;
        gpu::require(cudaMemcpyAsync(&wrong, differences, sizeof wrong, cudaMemcpyDefault, stream),
                     "cannot read a count");
        gpu::require(cudaStreamSynchronize(stream), "cannot compare results");
        if (wrong > 0) fail(row, v.by, std::to_string(wrong) + " elements differ");
      });
      if (first && row.problem.page_size == 0) verify_rows(row);
      first = false;
    }
  }

  [[noreturn]] static void fail(const attention_row& row, const std::string& way,
                                const std::string& what) {
    throw error(errc::internal, way + ", " + row.name + ", batch " +
                                    std::to_string(row.problem.batch) + ", " +
                                    std::to_string(row.problem.keys) + " keys: " + what);
  }

  void verify_rows(const attention_row& row) {
    const std::int64_t rows = row.problem.batch * row.problem.heads;
    for (std::int64_t i = 0; i < most_compared_rows; ++i)
      verify_row(row, i * (rows - 1) / (most_compared_rows - 1));
  }
  void verify_row(const attention_row& row, std::int64_t at) {
    const auto width = static_cast<std::size_t>(row.problem.head_dim);
    std::vector<std::vector<float>> parts;
    std::vector<std::vector<bf16>> found;
    for (const int rank : everybody_) {
      team_.use(rank);
      cudaStream_t stream = team_.stream_of(rank);
      const attention_shard shard = memory_.shard_of(row, rank, 0);
      const device_buffer sums((width + 2) * sizeof(float));
      attend_plainly(row.problem, of(rank).q.data(), shard.keys.data, shard.values.data, at,
                     static_cast<float*>(of(rank).scratch.data()), static_cast<float*>(sums.data()),
                     stream);
      parts.emplace_back(width + 2);
      found.emplace_back(width);
      gpu::require(cudaMemcpyAsync(parts.back().data(), sums.data(), (width + 2) * sizeof(float),
                                   cudaMemcpyDefault, stream),
                   "cannot read sums");
      gpu::require(
          cudaMemcpyAsync(found.back().data(),
                          static_cast<const bf16*>(of(rank).out.data()) + at * row.problem.head_dim,
                          width * sizeof(bf16), cudaMemcpyDefault, stream),
          "cannot read a result");
      gpu::require(cudaStreamSynchronize(stream), "the reference kernel failed");
    }
    for (const auto& of_rank : found) compare(row, of_rank, parts);
  }
  /// Compares a row of a result with the combination of its parts.
  static void compare(const attention_row& row, const std::vector<bf16>& actual,
                      const std::vector<std::vector<float>>& parts) {
    const std::size_t width = actual.size();
    double most = -HUGE_VAL;
    for (const auto& part : parts) most = std::max(most, static_cast<double>(part[width + 1]));
    std::vector<double> is(width);
    std::vector<double> should(width);
    for (std::size_t j = 0; j < width; ++j) {
      double sum = 0;
      double total = 0;
      for (const auto& part : parts) {
        const double weight = std::exp(static_cast<double>(part[width + 1]) - most);
        sum += weight * static_cast<double>(part[j]);
        total += weight * static_cast<double>(part[width]);
      }
      is[j] = static_cast<double>(static_cast<float>(actual[j]));
      should[j] = sum / total;
    }
    // The bound is explained at attention_inputs::result.
    deviation off(largest_error);
    off.add_row(
        std::span<const double>(is), should,
        6 * largest_error + partials_share(row.problem.partials, static_cast<int>(parts.size())),
        0);
    const double error = off.relative_error();
    if (!(error <= largest_error))
      fail(row, "fused_sequential", "the relative error is " + std::to_string(error));
  }

  void time(attention_row& row, std::vector<variant>& variants) {
    const int times = memory_.runs_of(row);
    for (variant& v : variants) {
      if (v.eager) continue;
      v.graphs = std::make_unique<rank_graphs>(team_.size());
      team_.together([&](world& w) {
        const auto& launch = v.launch[static_cast<std::size_t>(w.rank())];
        cudaStream_t stream = team_.stream_of(w.rank());
        v.graphs->capture(w.rank(), stream, times, [&](int i) { launch(i, stream); });
      });
    }
    std::vector<std::vector<double>> seconds(variants.size());
    for (int repeat = -2; repeat < options_.repeats; ++repeat) {
      for (std::size_t i = 0; i < variants.size(); ++i) {
        const double longest =
            variants[i].eager ? timed_eagerly(variants[i], times) : timed(variants[i]);
        if (repeat >= 0) seconds[i].push_back(longest / times);
      }
    }
    for (std::size_t i = 0; i < variants.size(); ++i)
      row.figures.push_back({variants[i].by, spread_of(seconds[i])});
  }
  double timed(const variant& v) {
    return team_.timed(everybody_,
                       [&](int rank, cudaStream_t stream) { v.graphs->launch(rank, stream); });
  }
  double timed_eagerly(const variant& v, int times) {
    return team_.timed_eagerly([&](int rank, cudaStream_t stream) {
      for (int i = 0; i < times; ++i) v.launch[static_cast<std::size_t>(rank)](i, stream);
    });
  }

  const attention_suite_options& options_;
  gpu_team& team_;
  std::vector<int> everybody_;
  attention_memory memory_;
};

}  // namespace

attention_report run_attention_suite(const attention_suite_options& options) {
  gpu_team team(options.ranks, heap_bytes);
  attention_report report{team.size(),       dtype::bf16,       team.device_name(),
                          bulk::nccl().text, memory_rate(team), attention_problems(options)};
  suite measured(options, team, report.rows);
  for (attention_row& row : report.rows) {
    measured.measure(row);
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
