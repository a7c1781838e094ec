#include <untax/select/evaluation.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/select/costs.hpp"

namespace untax::select {
namespace {

/// Accumulates the costs of one rule of choice.
class account {
 public:
  account(const table& records, const cost_model& costs, std::string way, double iterations)
      : records_(records), costs_(costs) {
    made_.way = std::move(way);
    made_.iterations = iterations;
  }

  /// Adds the choice for one record; `paid` is the cost of gathering in seconds.
  void add(std::size_t record, std::size_t candidate, double paid = 0) {
    const double least = costs_.least(record, made_.iterations);
    const double run = costs_.bare_cost(record, candidate, made_.iterations);
    const double ratio = (run + paid) / least;
    made_.failures += std::isnan(records_.times(record, candidate)) ? 1 : 0;
    best_ += run <= least ? 1 : 0;
    logarithms_ += std::log(ratio);
    made_.seconds += run + paid;
    made_.oracle_seconds += least;
    if (ratio > made_.worst_ratio) {
      made_.worst_ratio = ratio;
      made_.worst = records_.labels[record];
    }
    made_.ratios.push_back(ratio);
  }

  evaluation finish() {
    const auto count = static_cast<double>(made_.ratios.size());
    made_.accuracy = best_ / count;
    made_.mean_ratio = std::exp(logarithms_ / count);
    std::vector<double> sorted = made_.ratios;
    std::ranges::sort(sorted);
    // The nearest rank: at least 99 % of the records have at most this ratio.
    const auto rank = static_cast<std::size_t>(std::ceil(0.99 * count));
    made_.p99_ratio = sorted[std::max<std::size_t>(rank, 1) - 1];
    return std::move(made_);
  }

 private:
  const table& records_;
  const cost_model& costs_;
  evaluation made_;
  double best_ = 0;
  double logarithms_ = 0;
};

/// The decisions of a selector for one record.
struct verdicts {
  int by_known = 0;
  int by_gathered = 0;
  bool gathers = false;
};

/// The values of the given features of a record; without `gathered`, only the known ones.
std::vector<double> given_of(const table& from, std::size_t record, bool gathered) {
  std::vector<double> given;
  for (std::size_t f = 0; f < from.what.features.size(); ++f) {
    const feature& entry = from.what.features[f];
    if (entry.given && (gathered || !entry.gathered)) given.push_back(from.features(record, f));
  }
  return given;
}

verdicts verdicts_of(const selector& chooser, const table& from, std::size_t record,
                     double iterations) {
  const std::vector<double> known = given_of(from, record, false);
  return {chooser.by_known(known, iterations),
          chooser.by_gathered(given_of(from, record, true), iterations),
          chooser.gathers(known, iterations)};
}

/// `ask(record, iterations)` returns the verdicts of a selector that may judge the record.
template <class Ask>
judgement judge(const table& records, const loss_weights& weights, const Ask& ask) {
  judgement total;
  const cost_model costs(records, weights);
  const auto& candidates = records.what.candidates;
  for (const double iterations : records.what.iterations) {
    account known(records, costs, "known", iterations);
    account gathered(records, costs, "gathered", iterations);
    account chosen(records, costs, "selector", iterations);
    account free(records, costs, "gathered for free", iterations);
    for (std::size_t i = 0; i < records.records(); ++i) {
      const verdicts v = ask(i, iterations);
      const double paid = records.gathering[i];
      known.add(i, static_cast<std::size_t>(v.by_known));
      gathered.add(i, static_cast<std::size_t>(v.by_gathered), paid);
      free.add(i, static_cast<std::size_t>(v.by_gathered));
      chosen.add(i, static_cast<std::size_t>(v.gathers ? v.by_gathered : v.by_known),
                 v.gathers ? paid : 0);
    }
    total.ways.push_back(known.finish());
    total.ways.push_back(gathered.finish());
    total.ways.push_back(chosen.finish());
    total.ways.push_back(free.finish());
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      account single(records, costs, "always " + candidates[c].name, iterations);
      for (std::size_t i = 0; i < records.records(); ++i) single.add(i, c);
      total.ways.push_back(single.finish());
    }
  }
  return total;
}

}  // namespace

judgement evaluate(const selector& chooser, const table& held_out, const loss_weights& weights) {
  return judge(held_out, weights, [&](std::size_t record, double iterations) {
    return verdicts_of(chooser, held_out, record, iterations);
  });
}

judgement cross_validate(const table& whole, int folds, std::uint64_t seed,
                         const training_options& options) {
  if (folds < 2 || static_cast<std::size_t>(folds) > whole.records()) {
    throw error(
        errc::invalid_argument,
        fmt::format("{} folds of {} records; it takes 2 folds or more, and a record for each",
                    folds, whole.records()));
  }
  const std::vector<int> fold_of = deal_folds(whole.records(), folds, seed);
  std::vector<selector> trained;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < whole.records(); ++i) {
      if (fold_of[i] != fold) rest.push_back(i);
    }
    trained.push_back(train(records_of(whole, rest), options));
  }
  return judge(whole, options.weights, [&](std::size_t record, double iterations) {
    return verdicts_of(trained[static_cast<std::size_t>(fold_of[record])], whole, record,
                       iterations);
  });
}

}  // namespace untax::select
