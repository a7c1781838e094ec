#pragma once

#include <span>
#include <vector>

#include <untax/select/features.hpp>
#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

namespace untax::select {

/// The costs and losses of choices for the records of a table, with guards applied.
class cost_model {
 public:
  cost_model(const table& from, const loss_weights& weights);

  /// The candidate without a guard that has the least total loss for one iteration.
  [[nodiscard]] std::size_t fallback() const noexcept { return fallback_; }

  /// The cost of a choice in seconds: of the candidate, or of the fallback if the guard refuses the
  /// candidate. Without gathered features, the known ones decide the guard. A failure costs a
  /// multiple of the slowest candidate that does not fail.
  [[nodiscard]] double cost(std::size_t record, std::size_t candidate, double iterations,
                            bool gathered) const;
  /// The cost of a candidate in seconds, whether or not its guard holds.
  [[nodiscard]] double bare_cost(std::size_t record, std::size_t candidate,
                                 double iterations) const;
  /// The least cost of the candidates that do not fail.
  [[nodiscard]] double least(std::size_t record, double iterations) const;
  /// The loss of each choice.
  [[nodiscard]] std::vector<double> losses(std::size_t record, double iterations,
                                           bool gathered) const;
  /// The losses of alternatives with these costs, relative to the cheapest one.
  [[nodiscard]] std::vector<double> losses_of(std::span<const double> costs,
                                              double iterations) const;

 private:
  [[nodiscard]] std::size_t carried_out(std::size_t record, std::size_t candidate,
                                        bool gathered) const;
  [[nodiscard]] double loss(double cost, double least, double iterations) const;

  const table& from_;
  loss_weights weights_;
  std::vector<std::vector<char>> by_known_;  // [record][candidate]: allowed by known features
  std::size_t fallback_ = 0;
  double mean_least_ = 0;  // of one iteration
};

}  // namespace untax::select
