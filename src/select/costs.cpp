#include "src/select/costs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace untax::select {
namespace {

constexpr double tail_begins = 1.25;  // times the least cost

}  // namespace

cost_model::cost_model(const table& from, const loss_weights& weights)
    : from_(from), weights_(weights) {
  const feature_set features(from.what);
  const std::size_t known = known_features(from.what);
  for (std::size_t i = 0; i < from.records(); ++i) {
    by_known_.emplace_back();
    for (std::size_t c = 0; c < from.what.candidates.size(); ++c)
      by_known_.back().push_back(features.allows(c, from.features.row(i).first(known)) ? 1 : 0);
  }
  const auto records = static_cast<double>(from.records());
  for (std::size_t i = 0; i < from.records(); ++i) mean_least_ += least(i, 1) / records;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < from.what.candidates.size(); ++c) {
    if (!from.what.candidates[c].guard.empty()) continue;
    double lost = 0;
    for (std::size_t i = 0; i < from.records(); ++i)
      lost += loss(bare_cost(i, c, 1), least(i, 1), 1);
    if (lost < best) {
      best = lost;
      fallback_ = c;
    }
  }
}

std::size_t cost_model::carried_out(std::size_t record, std::size_t candidate,
                                    bool gathered) const {
  const bool taken =
      gathered ? from_.allowed(record, candidate) != 0 : by_known_[record][candidate] != 0;
  return taken ? candidate : fallback_;
}

double cost_model::bare_cost(std::size_t record, std::size_t candidate, double iterations) const {
  const double cost = from_.cost(record, candidate, iterations);
  if (!std::isnan(cost)) return cost;
  double slowest = 0;
  for (std::size_t c = 0; c < from_.what.candidates.size(); ++c) {
    const double other = from_.cost(record, c, iterations);
    if (!std::isnan(other)) slowest = std::max(slowest, other);
  }
  return weights_.failure * slowest;
}

double cost_model::cost(std::size_t record, std::size_t candidate, double iterations,
                        bool gathered) const {
  return bare_cost(record, carried_out(record, candidate, gathered), iterations);
}

double cost_model::least(std::size_t record, double iterations) const {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < from_.what.candidates.size(); ++c) {
    const double cost = from_.cost(record, c, iterations);
    if (!std::isnan(cost)) best = std::min(best, cost);
  }
  return best;
}

double cost_model::loss(double cost, double least, double iterations) const {
  const double ratio = cost / least;
  return weights_.relative * std::log(ratio) + weights_.tail * std::max(0.0, ratio - tail_begins) +
         weights_.total * (cost - least) / (mean_least_ * iterations);
}

std::vector<double> cost_model::losses(std::size_t record, double iterations, bool gathered) const {
  const double best = least(record, iterations);
  std::vector<double> lost;
  for (std::size_t c = 0; c < from_.what.candidates.size(); ++c)
    lost.push_back(loss(cost(record, c, iterations, gathered), best, iterations));
  return lost;
}

std::vector<double> cost_model::losses_of(std::span<const double> costs, double iterations) const {
  const double best = *std::ranges::min_element(costs);
  std::vector<double> lost;
  for (const double cost : costs) lost.push_back(loss(cost, best, iterations));
  return lost;
}

}  // namespace untax::select
