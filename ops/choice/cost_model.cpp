#include "ops/choice/cost_model.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace untax {
namespace {

constexpr double fixed_unit = 1e-6;  ///< seconds
constexpr int rounds = 1000;

/// The x >= 0 that minimises |A x - 1|, where `rows` are the rows of A, by cyclic coordinate
/// descent.
template <std::size_t N>
std::array<double, N> least_squares(const std::vector<std::array<double, N>>& rows) {
  std::array<std::array<double, N>, N> squares{};
  std::array<double, N> right{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < N; ++i) {
      right[i] += row[i];
      for (std::size_t j = 0; j < N; ++j) squares[i][j] += row[i] * row[j];
    }
  }
  std::array<double, N> x{};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      double rest = right[i];
      for (std::size_t j = 0; j < N; ++j) rest -= squares[i][j] * x[j];
      if (squares[i][i] > 0) x[i] = std::max(0.0, x[i] + rest / squares[i][i]);
    }
  }
  return x;
}

}  // namespace

cost_model::cost_model(const tuning_table& table, const tuned_problem& problem, int ranks)
    : rates_(table.rates) {
  tuned_problem family = problem;
  family.ranks = ranks;
  std::map<pattern, std::vector<terms>> rows;
  for (const tuning_entry& entry : table.entries) {
    if (!same_family(entry.problem, family)) continue;
    for (const auto& [how, seconds] : entry.seconds) {
      terms row = terms_of(entry.problem);
      for (double& term : row) term /= seconds;
      rows[how].push_back(row);
    }
  }
  for (const auto& [how, all] : rows) factors_[how] = least_squares(all);
}

cost_model::terms cost_model::terms_of(const tuned_problem& problem) const {
  const device_bounds bounds = rates_.bounds(problem);
  // With a single entry the first term explains all of its time.
  return {bounds.compute, bounds.link, fixed_unit};
}

double cost_model::seconds(pattern how, const tuned_problem& problem) const {
  const terms& factors = factors_.at(how);
  const terms now = terms_of(problem);
  double sum = 0;
  for (std::size_t i = 0; i < now.size(); ++i) sum += factors[i] * now[i];
  return sum;
}

}  // namespace untax
