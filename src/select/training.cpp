#include <untax/select/training.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/select/costs.hpp"

namespace untax::select {
namespace {

/// Training data of a tree: features and losses of choices by row, and the record of each row.
struct lesson {
  grid features;
  grid loss;
  std::vector<std::size_t> records;

  [[nodiscard]] lesson part(const std::vector<int>& folds, int fold, bool inside) const {
    lesson some;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if ((folds[records[i]] == fold) != inside) continue;
      some.features.add_row(features.row(i));
      some.loss.add_row(loss.row(i));
      some.records.push_back(records[i]);
    }
    return some;
  }
  [[nodiscard]] double loss_of(const decision_tree& tree) const {
    double sum = 0;
    for (std::size_t i = 0; i < records.size(); ++i)
      sum += loss(i, static_cast<std::size_t>(tree.choice(features.row(i))));
    return sum;
  }
};

constexpr std::array least_records = {3, 8, 20};  // in a leaf, each with all numbers of iterations
constexpr std::array scatters = {0.02, 0.1, 0.4};
constexpr double next_to_nothing = 0.01;  // relative to the least cost of an input

decision_tree tree_of(const lesson& l, const tree_limits& limits) {
  return refined(grow(l.features, l.loss, limits), l.features, l.loss, limits);
}

/// The limits whose trees lose least on held-out records. Each record has `times_each` rows, one
/// per number of iterations. The limits of records are multiples of this, since a leaf with fewer
/// rows could memorise a single record.
tree_limits best_limits(const lesson& whole, const std::vector<int>& folds, int times_each,
                        const training_options& options) {
  tree_limits best = options.largest;
  double least = std::numeric_limits<double>::infinity();
  std::vector<tree_limits> tried;
  for (const int records : least_records) {
    for (const double scatter : scatters) {
      tried.push_back(options.largest);
      tried.back().records = std::max(records * times_each, options.largest.records);
      tried.back().scatter = scatter;
    }
  }
  for (const tree_limits& limits : tried) {
    std::vector<double> lost(static_cast<std::size_t>(limits.leaves) + 1);
    for (int fold = 0; fold < options.folds; ++fold) {
      const lesson held_out = whole.part(folds, fold, true);
      const lesson rest = whole.part(folds, fold, false);
      if (rest.records.empty()) continue;
      decision_tree tree = grow(rest.features, rest.loss, limits);
      for (int leaves = limits.leaves; leaves > 0; --leaves) {
        if (leaves < tree.leaves()) tree = pruned(tree, leaves);
        lost[static_cast<std::size_t>(leaves)] += held_out.loss_of(tree);
      }
    }
    for (int leaves = 1; leaves <= limits.leaves; ++leaves) {
      if (lost[static_cast<std::size_t>(leaves)] < least * (1 - 1e-9)) {
        least = lost[static_cast<std::size_t>(leaves)];
        best = limits;
        best.leaves = leaves;
      }
    }
  }
  return best;
}

class trainer {
 public:
  trainer(const table& from, const training_options& options)
      : from_(from),
        options_(options),
        costs_(from, options.weights),
        folds_(deal_folds(from.records(), options.folds, options.seed)) {}

  selector run() {
    const int times_each = static_cast<int>(from_.what.iterations.size());
    const lesson known = kernels(false);
    const lesson gathered = kernels(true);
    const tree_limits known_limits = best_limits(known, folds_, times_each, options_);
    const tree_limits gathered_limits = best_limits(gathered, folds_, times_each, options_);
    const lesson ways = whether_to_gather(known, known_limits, gathered, gathered_limits);
    return {from_.what, tree_of(known, known_limits), tree_of(gathered, gathered_limits),
            grow(ways.features, ways.loss, best_limits(ways, folds_, times_each, options_)),
            static_cast<int>(costs_.fallback())};
  }

 private:
  [[nodiscard]] std::vector<double> inputs(std::size_t record, double iterations,
                                           bool gathered) const {
    const auto row = from_.features.row(record);
    const auto end = gathered
                         ? row.end()
                         : row.begin() + static_cast<std::ptrdiff_t>(known_features(from_.what));
    std::vector<double> values(row.begin(), end);
    values.push_back(iterations);
    return values;
  }
  /// Training data for the choice of a candidate.
  [[nodiscard]] lesson kernels(bool gathered) const {
    lesson result;
    for (const double iterations : from_.what.iterations) {
      for (std::size_t i = 0; i < from_.records(); ++i) {
        result.features.add_row(inputs(i, iterations, gathered));
        result.loss.add_row(costs_.losses(i, iterations, gathered));
        result.records.push_back(i);
      }
    }
    return result;
  }
  /// Training data for the choice whether to gather. 0: use the known features; 1: gather first.
  [[nodiscard]] lesson whether_to_gather(const lesson& known, const tree_limits& known_limits,
                                         const lesson& gathered,
                                         const tree_limits& gathered_limits) const {
    lesson result;
    for (int fold = 0; fold < options_.folds; ++fold) {
      const lesson known_rest = known.part(folds_, fold, false);
      const lesson gathered_rest = gathered.part(folds_, fold, false);
      const decision_tree by_known = tree_of(known_rest, known_limits);
      const decision_tree by_gathered = tree_of(gathered_rest, gathered_limits);
      for (const double iterations : from_.what.iterations) {
        for (std::size_t i = 0; i < from_.records(); ++i) {
          if (folds_[i] != fold) continue;
          const std::vector<double> with = inputs(i, iterations, true);
          const std::vector<double> without = inputs(i, iterations, false);
          std::array costs = {
              costs_.cost(i, static_cast<std::size_t>(by_known.choice(without)), iterations, false),
              costs_.cost(i, static_cast<std::size_t>(by_gathered.choice(with)), iterations, true) +
                  from_.gathering[i]};
          // If gathering costs almost nothing, a guess without it never counts as cheaper.
          if (from_.gathering[i] <= next_to_nothing * costs_.least(i, iterations))
            costs[0] = std::max(costs[0], costs[1]);
          result.features.add_row(without);
          result.loss.add_row(costs_.losses_of(costs, iterations));
          result.records.push_back(i);
        }
      }
    }
    return result;
  }

  const table& from_;
  training_options options_;
  cost_model costs_;
  std::vector<int> folds_;
};

}  // namespace

std::vector<int> deal_folds(std::size_t records, int folds, std::uint64_t seed) {
  std::vector<std::size_t> order(records);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // std::shuffle is not used: its result differs between standard libraries.
  std::mt19937_64 random(seed);
  for (std::size_t i = records; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<int> fold(records);
  for (std::size_t i = 0; i < records; ++i)
    fold[order[i]] = static_cast<int>(i % static_cast<std::size_t>(folds));
  return fold;
}

selector train(const table& from, const training_options& options) {
  if (options.folds < 2 || static_cast<std::size_t>(options.folds) > from.records()) {
    throw error(errc::invalid_argument,
                fmt::format("cross-validation in {} folds of {} records; it takes 2 folds or more, "
                            "and a record for each",
                            options.folds, from.records()));
  }
  if (options.largest.depth < 0 || options.largest.leaves < 1 || options.largest.records < 1) {
    throw error(
        errc::invalid_argument,
        fmt::format("trees of depth {} with {} leaves of {} records; they have depth 0, 1 "
                    "leaf and 1 record at least",
                    options.largest.depth, options.largest.leaves, options.largest.records));
  }
  return trainer(from, options).run();
}

}  // namespace untax::select
