#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <untax/select/table.hpp>

namespace untax::select {

/// A binary decision tree over features: it ends in the number of a choice.
class decision_tree {
 public:
  struct node {
    int feature = -1;      ///< -1: a leaf
    double threshold = 0;  ///< at most this: to `low`, above it: to `high`
    int low = -1;
    int high = -1;
    int choice = 0;           ///< of a leaf, and of an inner node if it were one
    std::size_t records = 0;  ///< that came here in training
    double loss = 0;          ///< of all of them with `choice`
  };

  /// A tree of one leaf.
  explicit decision_tree(int choice = 0) : nodes_{{.choice = choice}} {}
  /// `nodes` begin with the root; children come behind their parent. Throws `invalid_argument` for
  /// nodes that are no tree.
  explicit decision_tree(std::vector<node> nodes);

  [[nodiscard]] int choice(std::span<const double> features) const {
    return nodes_[static_cast<std::size_t>(leaf(features))].choice;
  }
  /// The nodes on the way, the leaf last.
  [[nodiscard]] std::vector<int> path(std::span<const double> features) const;
  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] int leaves() const noexcept { return static_cast<int>(nodes_.size() / 2 + 1); }
  [[nodiscard]] int depth() const;

 private:
  [[nodiscard]] int leaf(std::span<const double> features) const {
    int at = 0;
    for (const node* n = &nodes_.front(); n->feature >= 0;
         n = &nodes_[static_cast<std::size_t>(at)])
      at = features[static_cast<std::size_t>(n->feature)] <= n->threshold ? n->low : n->high;
    return at;
  }

  std::vector<node> nodes_;
};

/// How large a tree may become, and what its splits look at.
struct tree_limits {
  int depth = 12;
  int leaves = 60;
  int records = 3;  ///< in each leaf, at least
  /// How much it counts, beside what is lost, how differently the records of a side lose. Loss
  /// alone sees nothing in a split that helps only together with the next one.
  double scatter = 0.1;
};

/// Grows a tree that loses little: record i with choice c loses `loss(i, c)`. Each split is the one
/// that lessens the loss most, of all features and of all thresholds between two values that occur;
/// then the split that gains least for each leaf it costs is taken back, again and again, until
/// there are no more than `limits.leaves` leaves (weakest-link pruning: Breiman, Friedman, Olshen,
/// Stone, Classification and Regression Trees, 1984). The same input makes the same tree.
[[nodiscard]] decision_tree grow(const grid& features, const grid& loss, const tree_limits& limits);

/// The same tree with at most so many leaves.
[[nodiscard]] decision_tree pruned(const decision_tree& tree, int leaves);

/// A tree of the same form that loses no more: one node after the other gets the split, or the
/// choice, that loses least while all others stay, until that hardly gains (alternating
/// optimization: Carreira-Perpinan and Tavallali, 2018). Sides keep `limits.records` records, as
/// `features` and `loss` have them; what nodes say of records and losses is of these.
[[nodiscard]] decision_tree refined(const decision_tree& tree, const grid& features,
                                    const grid& loss, const tree_limits& limits);

}  // namespace untax::select
