#pragma once

#include <span>
#include <vector>

#include <untax/select/features.hpp>
#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

namespace untax::select {

/// What choices cost for the records of a table, guards included, and what they lose.
class cost_model {
 public:
  cost_model(const table& from, const loss_weights& weights);

  /// The candidate without a guard that fails least, of those the one that loses least.
  [[nodiscard]] std::size_t fallback() const noexcept { return fallback_; }

  /// Seconds of a choice: of the candidate, or of the fallback where its guard refuses it. With the
  /// known features only, they answer for its guard. A failure costs a multiple of
  /// the slowest that does not fail.
  [[nodiscard]] double cost(std::size_t record, std::size_t candidate, double iterations,
                            bool gathered) const;
  /// Seconds of a candidate whatever its guard says.
  [[nodiscard]] double bare_cost(std::size_t record, std::size_t candidate,
                                 double iterations) const;
  /// Of all candidates that do not fail.
  [[nodiscard]] double least(std::size_t record, double iterations) const;
  /// What each choice loses.
  [[nodiscard]] std::vector<double> losses(std::size_t record, double iterations,
                                           bool gathered) const;
  /// What ways lose that cost so much: against the least of them.
  [[nodiscard]] std::vector<double> losses_of(std::span<const double> costs,
                                              double iterations) const;

 private:
  [[nodiscard]] std::size_t carried_out(std::size_t record, std::size_t candidate,
                                        bool gathered) const;
  [[nodiscard]] double loss(double cost, double least, double iterations) const;

  const table& from_;
  loss_weights weights_;
  std::vector<std::vector<char>> by_known_;  // of a record: candidates that known features allow
  std::size_t fallback_ = 0;
  double mean_least_ = 0;  // of one iteration
};

}  // namespace untax::select
