#include "bench/suites/shared.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/devices.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {
namespace {

/// The number of runs that are timed together, so that the late start of a rank counts once.
constexpr int runs = 8;
/// The time for which a stream is held: all runs are launched before the first one begins.
constexpr std::chrono::milliseconds hold{2};
constexpr std::size_t heap_bytes = std::size_t{1} << 30U;

void hold_stream(cudaStream_t stream) {
  gpu::require(cudaLaunchHostFunc(
                   stream, [](void*) { std::this_thread::sleep_for(hold); }, nullptr),
               "cannot hold a stream");
}

/// Seconds of one run at this rank. An untimed run before the first timed one brings the ranks
/// together.
double timed_run(workload& load, const gpu::stopwatch& watch) {
  hold_stream(watch.stream());
  load.launch({watch.stream()});
  watch.start();
  for (int i = 0; i < runs; ++i) load.launch({watch.stream()});
  return watch.stop() / runs;
}

/// The error of a run with fresh inputs and a poisoned result.
double checked_run(workload& load, const gpu::stopwatch& watch, std::uint64_t seed) {
  load.refresh(seed);
  load.poison_result();
  load.launch({watch.stream()});
  (void)watch.stop();
  return load.relative_error();
}

/// CUDA reads these variables when it starts: ranks that share a GPU have separate queues, and none
/// of their kernels is loaded while they wait for each other.
void prepare_sharing() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread is there yet
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // NOLINTEND(concurrency-mt-unsafe)
}

/// The figure that all ranks add to: the longest of their times, and their errors.
class gathered_figure {
 public:
  /// Begins the figures of a world, which adds `repeats` times.
  void begin(int repeats) { seconds_.resize(seconds_.size() + static_cast<std::size_t>(repeats)); }
  void add(const std::vector<double>& seconds, double error) {
    const std::scoped_lock lock(mutex_);
    const std::size_t first = seconds_.size() - seconds.size();
    for (std::size_t i = 0; i < seconds.size(); ++i)
      seconds_[first + i] = std::max(seconds_[first + i], seconds[i]);
    error_ = std::max(error_, error);
  }
  [[nodiscard]] spread time() const { return spread_of(seconds_); }
  [[nodiscard]] double error() const noexcept { return error_; }

 private:
  std::mutex mutex_;
  std::vector<double> seconds_;
  double error_ = 0;
};

/// A problem that is measured in worlds of its own.
struct shared_trial {
  const operator_entry& entry;
  const gemm_problem& problem;
  pattern how;
  int ranks;
  const shared_options& options;
};

/// Times one world, in which events are recorded only if `recorded`. Returns the chosen plan.
std::string time_world(const shared_trial& trial, bool recorded, gathered_figure& total) {
  const shared_options& options = trial.options;
  const int ranks = trial.ranks;
  std::string explanation;
  total.begin(options.repeats);
  world_options shared;
  shared.memory = memory_kind::cuda;
  shared.ranks_per_gpu = ranks;
  shared.heap_bytes = heap_bytes;
  run_gpus(
      ranks,
      [&](world& w) {
        const gpu::stopwatch watch;
        std::optional<trace_pause> pause;
        if (!recorded) pause.emplace();
        workload load(w, trial.entry, trial.problem, {.how = trial.how}, options.seed);
        watch.start();
        double error = checked_run(load, watch, options.seed);
        std::vector<double> seconds;
        for (int i = 0; i < options.repeats; ++i) {
          w.barrier();
          seconds.push_back(timed_run(load, watch));
          w.check();
        }
        error = std::max(error, checked_run(load, watch, options.seed + 1));
        total.add(seconds, error);
        if (w.rank() == 0) explanation = load.explain();
      },
      shared);
  return explanation;
}

pattern_figure measured(const shared_trial& trial) {
  pattern_figure figure;
  figure.by = name_of(trial.how);
  figure.how = figure.asked = trial.how;
  gathered_figure plain;
  gathered_figure recorded;
  try {
    for (int round = 0; round < (trial.options.traced ? 2 : 1); ++round) {
      figure.explanation = time_world(trial, false, plain);
      if (trial.options.traced) (void)time_world(trial, true, recorded);
    }
    figure.time = plain.time();
    if (trial.options.traced) figure.traced_time = recorded.time();
    figure.error = std::max(plain.error(), recorded.error());
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    figure.refusal = e.what();
  }
  return figure;
}

}  // namespace

shared_report run_shared_suite(const shared_options& options) {
  const std::vector<pattern> fused = {pattern::bulk_synchronous, pattern::producer_consumer,
                                      pattern::fused_sequential, pattern::fused_specialized,
                                      pattern::fused_warp_specialized};
  const std::vector<pattern> sums = {pattern::automatic, pattern::producer_consumer,
                                     pattern::fused_sequential, pattern::fused_specialized,
                                     pattern::fused_warp_specialized};
  prepare_sharing();
  shared_report report;
  const device_survey survey = survey_devices(false);
  if (survey.devices.empty())
    throw error(errc::unsupported, "this suite needs a GPU, and there is none: " + survey.problem);
  report.device = survey.devices.front().name;
  report.seed = options.seed;
  report.traced = options.traced;
  for (const int ranks : options.rank_counts) {
    for (const std::string& name :
         options.operators.empty() ? default_operators(ranks) : options.operators) {
      const operator_entry& entry = operator_named(name);
      for (const gemm_problem& problem : problems_of(options, name, ranks)) {
        shared_row row{name, ranks, problem, tolerance_of(entry, problem), {}};
        for (const pattern how : entry.sums_to ? sums : fused)
          row.figures.push_back(measured({entry, problem, how, ranks, options}));
        report.rows.push_back(std::move(row));
        if (options.progress) options.progress();
      }
    }
  }
  return report;
}

}  // namespace untax::bench
