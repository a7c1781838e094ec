#pragma once

#include <cstdint>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>
#include <untax/select/tree.hpp>

namespace untax::select {

/// The loss of a choice in training. With r = its cost / the least cost of the input, it is
///     relative * log(r) + tail * max(0, r - 1.25) + total * (its cost - the least) / the mean of
///     the least costs.
/// The logarithm corresponds to geometric means. The second term limits how bad a single input may
/// be, the third corresponds to the sum of all times.
struct loss_weights {
  double relative = 1;
  double tail = 4;
  double total = 0.5;
  /// A candidate that fails costs this multiple of the slowest one that does not.
  double failure = 10;
};

/// Options of training.
struct training_options {
  tree_limits largest;  ///< limits of the trees; cross-validation chooses smaller ones
  loss_weights weights;
  int folds = 5;           ///< of cross-validation
  std::uint64_t seed = 1;  ///< of the folds: the same seed gives the same trees
};

/// Trains three trees: one that chooses by the known features, one that chooses by the gathered
/// ones as well, and one that says whether gathering pays for an input and its number of
/// iterations. Cross-validation chooses the size of each. The third is trained on the costs of the
/// other two when they were trained without the record. After Swann, Osama, Sangaiah, Mahmud, Seer:
/// Predictive Runtime Kernel Selection for Irregular Problems, arXiv 2403.17017.
///
/// Throws `invalid_argument` for a table with fewer records than folds, and for options that are
/// not possible.
[[nodiscard]] selector train(const table& from, const training_options& options = {});

/// The fold of each record, assigned at random, with equally many records in each.
[[nodiscard]] std::vector<int> deal_folds(std::size_t records, int folds, std::uint64_t seed);

}  // namespace untax::select
