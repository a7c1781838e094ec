#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <untax/select/table.hpp>

namespace untax::select {

/// A binary decision tree over features, whose leaves are the numbers of choices.
class decision_tree {
 public:
  /// A node. Its children are indices of nodes.
  struct node {
    int feature = -1;      ///< -1: a leaf
    double threshold = 0;  ///< values up to this go to `low`, others to `high`
    int low = -1;
    int high = -1;
    int choice = 0;           ///< of a leaf; of an inner node, the choice if it were a leaf
    std::size_t records = 0;  ///< records that reached the node in training
    double loss = 0;          ///< of all of these records with `choice`
  };

  /// A tree of one leaf.
  explicit decision_tree(int choice = 0) : nodes_{{.choice = choice}} {}
  /// `nodes` begin with the root, and children come after their parent. Throws `invalid_argument`
  /// for nodes that are not a tree.
  explicit decision_tree(std::vector<node> nodes);

  /// The choice for these features.
  [[nodiscard]] int choice(std::span<const double> features) const {
    return nodes_[static_cast<std::size_t>(leaf(features))].choice;
  }
  /// The nodes from the root to a leaf, which is the last.
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

/// The limits of a tree, and a weight for its splits.
struct tree_limits {
  int depth = 12;
  int leaves = 60;
  int records = 3;  ///< the fewest records in a leaf
  /// The weight of the differences between the losses of the records on a side, relative to the
  /// loss. The loss alone gives no value to a split that helps only together with the next one.
  double scatter = 0.1;
};

/// Grows a tree with a small loss: record i with choice c loses `loss(i, c)`. Each split is the one
/// that reduces the loss most, of all features and of all thresholds between two values that occur.
/// Then the split that gains least for each leaf is removed, again and again, until there are no
/// more than `limits.leaves` leaves (weakest-link pruning: Breiman, Friedman, Olshen, Stone,
/// Classification and Regression Trees, 1984). The same input gives the same tree.
[[nodiscard]] decision_tree grow(const grid& features, const grid& loss, const tree_limits& limits);

/// The tree pruned to at most `leaves` leaves.
[[nodiscard]] decision_tree pruned(const decision_tree& tree, int leaves);

/// A tree of the same form that loses no more. One node after the other gets the split, or the
/// choice, that loses least while all others stay, until the gain is negligible (alternating
/// optimization: Carreira-Perpinan and Tavallali, 2018). Both sides of a split keep
/// `limits.records` records of `features` and `loss`, and the records and losses of nodes are
/// counted on these.
[[nodiscard]] decision_tree refined(const decision_tree& tree, const grid& features,
                                    const grid& loss, const tree_limits& limits);

}  // namespace untax::select
