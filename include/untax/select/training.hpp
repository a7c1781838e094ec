#pragma once

#include <cstdint>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>
#include <untax/select/tree.hpp>

namespace untax::select {

/// What a choice loses, as training counts it: with r = its cost / the least cost of the input,
///     relative * log(r) + tail * max(0, r - 1.25) + total * (its cost - the least) / the mean of
/// the least costs. The logarithm is what geometric means are made of; the second term keeps single
/// inputs from going far wrong, the third the sum of all times.
struct loss_weights {
  double relative = 1;
  double tail = 4;
  double total = 0.5;
  /// A candidate that fails costs so many times as much as the slowest that does not.
  double failure = 10;
};

struct training_options {
  tree_limits largest;  ///< cross-validation chooses smaller ones
  loss_weights weights;
  int folds = 5;           ///< of cross-validation
  std::uint64_t seed = 1;  ///< of the folds: the same seed makes the same trees
};

/// Trains three trees: one that chooses from what is known, one from what is gathered as well, and
/// one that says whether gathering pays for an input and its number of iterations. How large each
/// may be is chosen by cross-validation. The third is trained on what the other two cost when they
/// were trained without the record in question. After Swann, Osama, Sangaiah, Mahmud, Seer:
/// Predictive Runtime Kernel Selection for Irregular Problems, arXiv 2403.17017.
///
/// Throws `invalid_argument` for a table of fewer records than folds, or impossible options.
[[nodiscard]] selector train(const table& from, const training_options& options = {});

/// A fold for each record, assigned at random, equally many in each.
[[nodiscard]] std::vector<int> deal_folds(std::size_t records, int folds, std::uint64_t seed);

}  // namespace untax::select
