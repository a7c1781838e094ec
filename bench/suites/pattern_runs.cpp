#include "bench/suites/pattern_runs.hpp"

#include <memory>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/trace/session.hpp>

#include "engines/bulk/quickest.hpp"

namespace untax::bench {
namespace {

constexpr int untimed_runs = 1;
constexpr int checks = 3;

/// The larger of two values, or NaN if either is.
double worse(double a, double b) { return a <= b ? b : a > b ? a : a + b; }

class pattern_runner {
 public:
  pattern_runner(world& w, const pattern_request& request)
      : world_(w),
        request_(request),
        errors_(w.allocate<double>(static_cast<std::size_t>(w.size()), "relative errors")) {
    for (const pattern how : request.patterns) {
      results_.push_back({how, how, {}, {}, std::nullopt, {}});
      if (auto load = made(results_.back())) {
        loads_.push_back(std::move(load));
        of_load_.push_back(results_.size() - 1);
      }
    }
  }

  std::vector<pattern_result> run() {
    if (request_.verify) verify_fresh(request_.seed + 1);
    time_all();
    if (request_.verify) {
      verify_what_is_there();
      verify_fresh(request_.seed + 2);
    }
    world_.barrier();
    loads_.clear();
    world_.free(errors_);
    return std::move(results_);
  }

 private:
  /// Makes the operator in one pattern; null if the operator refuses that pattern, one of several.
  std::unique_ptr<trial> made(pattern_result& result) {
    const trace_label label{std::string(name_of(result.asked))};
    try {
      auto load = request_.what.make(world_, result.asked, request_.seed);
      result.chosen = load->chosen();
      result.explanation = load->explain();
      return load;
    } catch (const error& e) {
      if (e.code() != errc::unsupported || request_.patterns.size() == 1) throw;
      result.refusal = e.what();
      return nullptr;
    }
  }

  void advance() const {
    if (world_.rank() == 0 && request_.progress) request_.progress();
  }

  void time_all() {
    timed_variants timed;
    timed.warmups = untimed_runs;
    timed.repeats = request_.repeats;
    timed.after_run = [this] { advance(); };
    for (const auto& load : loads_) timed.run.emplace_back([&load] { load->run(); });
    const auto times = time_interleaved(world_, timed);
    for (std::size_t i = 0; i < times.size(); ++i) results_[of_load_[i]].time = times[i];
  }

  void verify_fresh(std::uint64_t seed) {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      loads_[i]->refresh(seed);
      loads_[i]->poison_result();
      loads_[i]->run();
      note_error(i);
    }
  }

  void verify_what_is_there() {
    for (std::size_t i = 0; i < loads_.size(); ++i) note_error(i);
  }

  void note_error(std::size_t i) {
    pattern_result& result = results_[of_load_[i]];
    result.error = worse(result.error.value_or(0), worst_of_ranks(loads_[i]->relative_error()));
    advance();
  }

  double worst_of_ranks(double mine) {
    // The host cannot write the heaps of GPUs.
    if (world_.memory() == memory_kind::cuda) {
      double worst = 0;
      for (const double deviation : bulk::values_of_ranks(world_, {mine}))
        worst = worse(worst, deviation);
      return worst;
    }
    world_.barrier();
    for (int peer = 0; peer < world_.size(); ++peer) {
      *errors_.at(peer, static_cast<std::size_t>(world_.rank())) = mine;
    }
    world_.barrier();
    double worst = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
      worst = worse(worst, *errors_.local(static_cast<std::size_t>(rank)));
    }
    return worst;
  }

  world& world_;
  const pattern_request& request_;
  symmetric<double> errors_;
  std::vector<std::unique_ptr<trial>> loads_;
  std::vector<std::size_t> of_load_;  ///< index of its result
  std::vector<pattern_result> results_;
};

}  // namespace

std::vector<pattern_result> run_patterns(world& w, const pattern_request& request) {
  return pattern_runner(w, request).run();
}

int steps_of(const pattern_request& request) {
  const int each = untimed_runs + request.repeats + (request.verify ? checks : 0);
  return each * static_cast<int>(request.patterns.size());
}

std::size_t heap_for(const pattern_request& request, int ranks) {
  return request.what.heap_bytes(ranks) * request.patterns.size() + (std::size_t{1} << 20);
}

std::vector<pattern> all_patterns_of(const trial_subject& what) {
  std::vector<pattern> patterns = {pattern::automatic};
  for (const pattern p : what.patterns) patterns.push_back(p);
  return patterns;
}

}  // namespace untax::bench
