#pragma once

#include <optional>
#include <span>
#include <vector>

#include <untax/select/expression.hpp>
#include <untax/select/schema.hpp>

namespace untax::select {

/// Computes the features of a schema from those that are given, and asks guards.
class feature_set {
 public:
  /// Throws `invalid_argument` for expressions that cannot be read, known features and known
  /// guards that take gathered ones, and guards over anything but features.
  explicit feature_set(const schema& s);

  /// All features, from the values of those that are given, in their order; or only the known ones,
  /// from the known ones that are given.
  [[nodiscard]] std::vector<double> complete(std::span<const double> given) const;
  /// How many of the given features are known, and how many there are.
  [[nodiscard]] std::size_t given_known() const noexcept { return given_known_; }
  [[nodiscard]] std::size_t given() const noexcept { return given_; }

  /// Whether `candidate` may be taken with these features. With the known features only, one whose
  /// guard takes gathered ones may where its known guard holds.
  [[nodiscard]] bool allows(std::size_t candidate, std::span<const double> features) const;
  /// Whether the guard of `candidate` is answered by known features.
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
