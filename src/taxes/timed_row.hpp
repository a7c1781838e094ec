#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <untax/taxes/timing.hpp>
#include <untax/trace/session.hpp>

#include "src/taxes/backends.hpp"

namespace untax {

/// Operators of the steps of a row, made anew while a trace is recorded. They run behind the timed
/// ones, which record nothing and are gone by then.
template <class Operator>
class traced_runs {
 public:
  traced_runs(const ablation_options& options, const layer_operation& op)
      : options_(&options), op_(&op) {}

  template <class Make>
  void add(const std::string& step, const std::string& ran, const Make& make) {
    const trace_label label(label_of(*op_, step, ran));
    ops_.push_back(make());
  }

  /// Runs all in turn. Collective.
  template <class Run>
  void run(world& w, const Run& run_one) {
    for (int i = 0; i < traced_runs_of(*options_); ++i) {
      for (const auto& one : ops_) {
        w.barrier();
        run_one(*one);
        if (w.rank() == 0 && options_->progress) options_->progress();
      }
    }
    w.barrier();
  }

 private:
  const ablation_options* options_;
  const layer_operation* op_;
  std::vector<std::unique_ptr<Operator>> ops_;
};

/// Times the steps of a row on the host, and compute and transfers alone, in turn at all ranks.
class timed_row {
 public:
  explicit timed_row(const ablation_options& options) : options_(&options) {
    timed_.warmups = host_warmups;
    timed_.repeats = options.repeats;
  }

  /// Adds a step. `run` is this rank's part; all ranks run theirs together.
  void add(std::string step, std::string name, std::function<void()> run) {
    steps_.emplace_back(std::move(step), std::move(name));
    timed_.run.push_back(std::move(run));
  }

  /// Adds an alternative for the arithmetic alone. The fastest one counts, since the bound is a
  /// lower limit.
  void add_compute(std::function<void()> run) { ways_.push_back(std::move(run)); }

  /// Times everything, and `link` as the transfers alone. Collective. Rank 0 fills `row`.
  void time(world& w, std::function<void()> link, tax_row& row) {
    for (std::function<void()>& way : ways_) timed_.run.push_back(std::move(way));
    timed_.run.push_back(std::move(link));
    if (w.rank() == 0) timed_.after_run = options_->progress;
    const auto times = time_interleaved(w, timed_);
    if (w.rank() != 0) return;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      add_step(row, steps_[i].first, steps_[i].second, times[i]);
    row.compute = *std::min_element(
        times.begin() + static_cast<std::ptrdiff_t>(steps_.size()), times.end() - 1,
        [](const spread& a, const spread& b) { return a.median < b.median; });
    // One rank sends nothing, and the time of an empty call is no bound.
    if (w.size() > 1) row.link = times.back();
  }

 private:
  const ablation_options* options_;
  std::vector<std::pair<std::string, std::string>> steps_;
  std::vector<std::function<void()>> ways_;
  timed_variants timed_;
};

}  // namespace untax
