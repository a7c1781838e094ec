#include <algorithm>
#include <limits>
#include <numeric>

#include <untax/select/tree.hpp>

#include "src/select/splits.hpp"

namespace untax::select {
namespace {

using node = decision_tree::node;

/// Losses are clamped to this in the scatter, which sums squares.
constexpr double most_scattered = 1;

/// Sums over records: losses, clamped losses, and squares of clamped losses.
struct sums {
  explicit sums(std::size_t choices) : lost(choices), counted(choices) {}

  void add(std::span<const double> loss, double sign = 1) {
    records += sign;
    for (std::size_t c = 0; c < lost.size(); ++c) {
      const double seen = std::min(loss[c], most_scattered);
      lost[c] += sign * loss[c];
      counted[c] += sign * seen;
      squares += sign * seen * seen;
    }
  }
  [[nodiscard]] double score(double scatter_weight) const {
    double scatter = squares;
    for (const double s : counted) scatter -= s * s / records;
    return *std::ranges::min_element(lost) + scatter_weight * scatter;
  }

  std::vector<double> lost;
  std::vector<double> counted;
  double squares = 0;
  double records = 0;
};

/// A split of a node's records, and the sum of the scores of both sides.
struct split {
  int feature = -1;
  double threshold = 0;
  double score = std::numeric_limits<double>::infinity();
};

class grower {
 public:
  grower(const grid& features, const grid& loss, const tree_limits& limits)
      : features_(features), loss_(loss), limits_(limits) {
    sorted_.resize(features.cols());
    for (std::size_t f = 0; f < sorted_.size(); ++f) {
      sorted_[f].resize(features.rows());
      std::iota(sorted_[f].begin(), sorted_[f].end(), std::size_t{0});
      std::ranges::stable_sort(sorted_[f], {}, [&](std::size_t i) { return features_(i, f); });
    }
    goes_low_.resize(features.rows());
    scratch_.resize(features.rows());
  }

  std::vector<node> run() {
    add(0, features_.rows(), 0);
    return std::move(nodes_);
  }

 private:
  /// Adds the subtree of the records [begin, end) of each sorted list. Returns its root.
  int add(std::size_t begin, std::size_t end, int depth) {
    const auto me = nodes_.size();
    nodes_.push_back(leaf_of(begin, end));
    const split best = depth < limits_.depth ? best_split(begin, end) : split{};
    if (best.feature < 0) return int_of(me);
    const std::size_t middle = divide(begin, end, best);
    nodes_[me].feature = best.feature;
    nodes_[me].threshold = best.threshold;
    const int low = add(begin, middle, depth + 1);
    nodes_[me].low = low;
    const int high = add(middle, end, depth + 1);
    nodes_[me].high = high;
    return int_of(me);
  }

  [[nodiscard]] node leaf_of(std::size_t begin, std::size_t end) const {
    sums all(loss_.cols());
    for (std::size_t i = begin; i < end; ++i) all.add(loss_.row(sorted_[0][i]));
    const auto best = std::ranges::min_element(all.lost);
    return {.choice = int_of(static_cast<std::size_t>(best - all.lost.begin())),
            .records = end - begin,
            .loss = *best};
  }

  [[nodiscard]] split best_split(std::size_t begin, std::size_t end) const {
    split best;
    const auto least = static_cast<std::size_t>(std::max(limits_.records, 1));
    if (end - begin < 2 * least) return best;
    sums all(loss_.cols());
    for (std::size_t i = begin; i < end; ++i) all.add(loss_.row(sorted_[0][i]));
    best.score = all.score(limits_.scatter) * (1 - 1e-12);
    for (std::size_t f = 0; f < sorted_.size(); ++f) {
      sums low(loss_.cols());
      sums high = all;
      for (std::size_t i = begin; i + least < end; ++i) {
        low.add(loss_.row(sorted_[f][i]));
        high.add(loss_.row(sorted_[f][i]), -1);
        const double value = features_(sorted_[f][i], f);
        const double next = features_(sorted_[f][i + 1], f);
        if (i + 1 - begin < least || !(value < next)) continue;
        const double score = low.score(limits_.scatter) + high.score(limits_.scatter);
        if (score < best.score) best = {int_of(f), threshold_between(value, next), score};
      }
    }
    return best;
  }

  /// Partitions all lists by a split and keeps their orders. Returns where the high side begins.
  std::size_t divide(std::size_t begin, std::size_t end, const split& chosen) {
    const auto feature = static_cast<std::size_t>(chosen.feature);
    std::size_t middle = begin;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t record = sorted_[feature][i];
      goes_low_[record] = features_(record, feature) <= chosen.threshold;
      middle += goes_low_[record] ? 1 : 0;
    }
    for (auto& list : sorted_) {
      std::size_t low = begin;
      std::size_t high = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (goes_low_[list[i]]) {
          list[low++] = list[i];
        } else {
          scratch_[high++] = list[i];
        }
      }
      std::copy_n(scratch_.begin(), high, list.begin() + static_cast<std::ptrdiff_t>(low));
    }
    return middle;
  }

  [[nodiscard]] static int int_of(std::size_t n) { return static_cast<int>(n); }

  const grid& features_;
  const grid& loss_;
  tree_limits limits_;
  std::vector<std::vector<std::size_t>> sorted_;  // the records, sorted by each feature
  std::vector<char> goes_low_;
  std::vector<std::size_t> scratch_;
  std::vector<node> nodes_;
};

/// Removes splits, the one with the least gain per leaf first.
class pruner {
 public:
  explicit pruner(std::vector<node> nodes) : nodes_(std::move(nodes)), below_(nodes_.size()) {}

  std::vector<node> run(int most_leaves) {
    while (sum(0).leaves > std::max(most_leaves, 1)) {
      std::size_t weakest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (below_[i].leaves < 2) continue;
        const double gain = (nodes_[i].loss - below_[i].loss) / (below_[i].leaves - 1);
        // Of equal gains the first counts, whose node is above the other nodes or beside them.
        if (gain < least) {
          least = gain;
          weakest = i;
        }
      }
      cut(weakest);
    }
    std::vector<node> kept;
    keep(0, kept);
    return kept;
  }

 private:
  struct subtree {
    int leaves = 0;  // 0: the node is gone
    double loss = 0;
  };

  subtree sum(int at) {
    const node& n = nodes_[index(at)];
    if (n.feature < 0) return below_[index(at)] = {1, n.loss};
    const subtree low = sum(n.low);
    const subtree high = sum(n.high);
    return below_[index(at)] = {low.leaves + high.leaves, low.loss + high.loss};
  }
  void cut(std::size_t at) {
    forget(nodes_[at].low);
    forget(nodes_[at].high);
    nodes_[at].feature = -1;
  }
  void forget(int at) {
    const node& n = nodes_[index(at)];
    if (n.feature >= 0) {
      forget(n.low);
      forget(n.high);
    }
    below_[index(at)] = {};
  }
  int keep(int at, std::vector<node>& kept) const {
    const auto me = kept.size();
    const node n = nodes_[index(at)];
    kept.push_back(n);
    if (n.feature < 0) {
      kept[me] = {.choice = n.choice, .records = n.records, .loss = n.loss};
    } else {
      const int low = keep(n.low, kept);
      const int high = keep(n.high, kept);
      kept[me].low = low;
      kept[me].high = high;
    }
    return static_cast<int>(me);
  }
  [[nodiscard]] static std::size_t index(int at) { return static_cast<std::size_t>(at); }

  std::vector<node> nodes_;
  std::vector<subtree> below_;
};

}  // namespace

decision_tree grow(const grid& features, const grid& loss, const tree_limits& limits) {
  return pruned(decision_tree(grower(features, loss, limits).run()), limits.leaves);
}

decision_tree pruned(const decision_tree& tree, int leaves) {
  return decision_tree(pruner(tree.nodes()).run(leaves));
}

}  // namespace untax::select
