#include <untax/select/features.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::select {

feature_set::feature_set(const schema& s) : known_(known_features(s)) {
  std::vector<std::string> names;
  for (const feature& f : s.features) {
    computed_.emplace_back();
    if (f.given) {
      ++given_;
      if (!f.gathered) ++given_known_;
    } else {
      computed_.back() = expression::parse(f.is, names);
    }
    names.push_back(f.name);
  }
  for (const candidate& c : s.candidates) {
    guards_.emplace_back();
    if (!c.guard.empty()) guards_.back() = expression::parse(c.guard, names);
    known_guards_.emplace_back();
    if (!c.known_guard.empty())
      known_guards_.back() = expression::parse(c.known_guard, std::span(names).first(known_));
  }
}

std::vector<double> feature_set::complete(std::span<const double> given) const {
  const bool complete_record = given.size() == given_;
  if (!complete_record && given.size() != given_known_) {
    throw error(errc::invalid_argument,
                fmt::format("there are {} values of features; there have to be {} for the known "
                            "features, or {} with the gathered ones",
                            given.size(), given_known_, given_));
  }
  std::vector<double> values;
  std::size_t next = 0;
  for (std::size_t f = 0; f < (complete_record ? computed_.size() : known_); ++f)
    values.push_back(computed_[f] ? computed_[f]->value(values) : given[next++]);
  return values;
}

bool feature_set::allows(std::size_t candidate, std::span<const double> features) const {
  const auto& guard = guards_[candidate];
  if (!guard) return true;
  if (features.size() == computed_.size() || is_guarded_by_known(candidate))
    return guard->value(features) != 0;
  return known_guards_[candidate] && known_guards_[candidate]->value(features) != 0;
}

bool feature_set::is_guarded_by_known(std::size_t candidate) const {
  const auto& guard = guards_[candidate];
  return !guard ||
         std::ranges::all_of(guard->uses(), [this](int f) { return f < static_cast<int>(known_); });
}

}  // namespace untax::select
