#pragma once

#include <optional>
#include <span>
#include <vector>

#include <untax/select/expression.hpp>
#include <untax/select/schema.hpp>

namespace untax::select {

/// Computes the features of a schema from those that are given, and evaluates guards.
class feature_set {
 public:
  /// Throws `invalid_argument` for expressions that cannot be read, for known features and known
  /// guards that use gathered ones, and for guards that use anything but features.
  explicit feature_set(const schema& s);

  /// All features, from the values of the given ones, in their order; or only the known features,
  /// from the given ones that are known.
  [[nodiscard]] std::vector<double> complete(std::span<const double> given) const;
  /// The number of given features that are known, and of all given features.
  [[nodiscard]] std::size_t given_known() const noexcept { return given_known_; }
  [[nodiscard]] std::size_t given() const noexcept { return given_; }

  /// Whether the guard of `candidate` holds with these features. If only the known features are
  /// there, a guard that uses gathered ones is replaced by the known guard.
  [[nodiscard]] bool allows(std::size_t candidate, std::span<const double> features) const;
  /// Whether the known features decide the guard of `candidate`.
  [[nodiscard]] bool is_guarded_by_known(std::size_t candidate) const;

 private:
  std::size_t known_;
  std::size_t given_known_ = 0;
  std::size_t given_ = 0;
  std::vector<std::optional<expression>> computed_;  // of each feature that is not given
  std::vector<std::optional<expression>> guards_;    // of each candidate
  std::vector<std::optional<expression>> known_guards_;
};

}  // namespace untax::select
