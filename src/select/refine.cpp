#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <untax/select/tree.hpp>

#include "src/select/splits.hpp"

namespace untax::select {
namespace {

using node = decision_tree::node;

constexpr double least_gain = 1e-4;  // relative gain of a sweep below which no other follows

class refiner {
 public:
  refiner(const decision_tree& tree, const grid& features, const grid& loss, int least)
      : nodes_(tree.nodes()), features_(features), loss_(loss), least_(std::max(least, 1)) {}

  std::vector<node> run(int sweeps) {
    double before = lost();
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      // Children come before parents, so a node is optimised for subtrees that are already
      // improved.
      for (std::size_t n = nodes_.size(); n-- > 0;) improve(n);
      const double now = lost();
      if (now > before * (1 - least_gain)) break;
      before = now;
    }
    count();
    return std::move(nodes_);
  }

 private:
  [[nodiscard]] int next_of(const node& n, std::size_t record) const {
    return features_(record, static_cast<std::size_t>(n.feature)) <= n.threshold ? n.low : n.high;
  }
  /// The leaf that a record reaches from a node.
  [[nodiscard]] const node& leaf_of(int from, std::size_t record) const {
    const node* at = &nodes_[static_cast<std::size_t>(from)];
    while (at->feature >= 0) at = &nodes_[static_cast<std::size_t>(next_of(*at, record))];
    return *at;
  }
  [[nodiscard]] double loss_from(int from, std::size_t record) const {
    return loss_(record, static_cast<std::size_t>(leaf_of(from, record).choice));
  }
  [[nodiscard]] double lost() const {
    double sum = 0;
    for (std::size_t i = 0; i < features_.rows(); ++i) sum += loss_from(0, i);
    return sum;
  }
  [[nodiscard]] std::vector<std::size_t> records_of(std::size_t number) const {
    std::vector<std::size_t> records;
    for (std::size_t i = 0; i < features_.rows(); ++i) {
      auto at = std::size_t{0};
      while (at != number && nodes_[at].feature >= 0)
        at = static_cast<std::size_t>(next_of(nodes_[at], i));
      if (at == number) records.push_back(i);
    }
    return records;
  }

  void improve(std::size_t number) {
    const std::vector<std::size_t> records = records_of(number);
    if (nodes_[number].feature >= 0) {
      divide(nodes_[number], records);
    } else if (!records.empty()) {
      choose(nodes_[number], records);
    }
  }
  void choose(node& leaf, const std::vector<std::size_t>& records) const {
    std::vector<double> lost(loss_.cols());
    for (const std::size_t i : records)
      for (std::size_t c = 0; c < lost.size(); ++c) lost[c] += loss_(i, c);
    const auto best = std::ranges::min_element(lost);
    if (*best < lost[static_cast<std::size_t>(leaf.choice)])
      leaf.choice = static_cast<int>(best - lost.begin());
  }

  /// Uses the split with the least loss for the present subtrees, if it loses less than the present
  /// split.
  void divide(node& inner, const std::vector<std::size_t>& records) const {
    // The additional loss of each record if it goes low instead of high.
    std::vector<double> more(records.size());
    double all_high = 0;
    double now = 0;
    for (std::size_t k = 0; k < records.size(); ++k) {
      const double high = loss_from(inner.high, records[k]);
      more[k] = loss_from(inner.low, records[k]) - high;
      all_high += high;
      now += next_of(inner, records[k]) == inner.low ? high + more[k] : high;
    }
    double best = now - 1e-9 * std::abs(now);
    std::vector<std::size_t> order(records.size());
    for (std::size_t f = 0; f < features_.cols(); ++f) {
      const auto value = [&](std::size_t k) { return features_(records[k], f); };
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, {}, value);
      double sum = all_high;
      for (std::size_t k = 0; k + 1 < order.size(); ++k) {
        sum += more[order[k]];
        const double low = value(order[k]);
        const double high = value(order[k + 1]);
        if (!(low < high) || k + 1 < least_ || order.size() - k - 1 < least_ || !(sum < best))
          continue;
        best = sum;
        inner.feature = static_cast<int>(f);
        inner.threshold = threshold_between(low, high);
      }
    }
  }
  /// Sets the records and the loss of each node.
  void count() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const std::vector<std::size_t> records = records_of(n);
      node& leaf = nodes_[n];
      if (leaf.feature >= 0 && !records.empty()) choose(leaf, records);
      leaf.records = records.size();
      leaf.loss = 0;
      for (const std::size_t i : records)
        leaf.loss += loss_(i, static_cast<std::size_t>(leaf.choice));
    }
  }

  std::vector<node> nodes_;
  const grid& features_;
  const grid& loss_;
  std::size_t least_;
};

}  // namespace

decision_tree refined(const decision_tree& tree, const grid& features, const grid& loss,
                      const tree_limits& limits) {
  constexpr int most_sweeps = 8;
  return decision_tree(refiner(tree, features, loss, limits.records).run(most_sweeps));
}

}  // namespace untax::select
