#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <untax/select/features.hpp>
#include <untax/select/schema.hpp>
#include <untax/select/tree.hpp>

namespace untax::select {

/// The choice for an input.
struct choice {
  int candidate = 0;
  bool gathered = false;  ///< whether features were gathered for it
};

/// Three trees that choose one of the candidates of a schema. The features of the trees are those
/// of the schema and, last, the number of iterations. It does not change; any threads may use it.
/// Features that are no finite numbers, given or computed, and iterations that are not above 0 are
/// refused with `invalid_argument`, as in training.
class selector {
 public:
  /// `fallback` is the candidate, without a guard, that is chosen if the guard of another one does
  /// not hold. Throws `invalid_argument` for trees with features or choices that do not exist.
  selector(schema what, decision_tree known, decision_tree gathered, decision_tree gather,
           int fallback);

  /// Chooses a candidate. `known` are the values of the given features that are known, in the order
  /// of the schema. `gather` is called at most once, if gathering pays, and returns the values of
  /// the given features that are gathered.
  [[nodiscard]] choice choose(std::span<const double> known, double iterations,
                              const std::function<std::vector<double>()>& gather) const;
  /// The candidate by the known features, and by all given ones.
  [[nodiscard]] int by_known(std::span<const double> known, double iterations) const;
  [[nodiscard]] int by_gathered(std::span<const double> given, double iterations) const;
  /// Whether gathering pays.
  [[nodiscard]] bool gathers(std::span<const double> known, double iterations) const;

  /// The decisions that lead to the choice, one on each line: "row_max = 12 <= 31.5".
  [[nodiscard]] std::string explain(std::span<const double> given, double iterations) const;

  [[nodiscard]] const schema& what() const noexcept { return what_; }
  [[nodiscard]] const feature_set& features() const noexcept { return features_; }
  [[nodiscard]] const decision_tree& known_tree() const noexcept { return known_; }
  [[nodiscard]] const decision_tree& gathered_tree() const noexcept { return gathered_; }
  [[nodiscard]] const decision_tree& gather_tree() const noexcept { return gather_; }
  [[nodiscard]] int fallback() const noexcept { return fallback_; }

 private:
  /// The inputs of the trees: all features that follow from the given ones, and the iterations.
  [[nodiscard]] std::vector<double> inputs(std::span<const double> given, double iterations) const;
  [[nodiscard]] int guarded(int candidate, std::span<const double> inputs) const;

  schema what_;
  feature_set features_;
  decision_tree known_;
  decision_tree gathered_;
  decision_tree gather_;
  int fallback_;
};

}  // namespace untax::select
