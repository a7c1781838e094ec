#include <untax/select/selector.hpp>

#include <cmath>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::select {
namespace {

void require_fit(const decision_tree& tree, const char* which, std::size_t features,
                 std::size_t choices) {
  for (const decision_tree::node& n : tree.nodes()) {
    if (n.feature >= static_cast<int>(features) || n.choice < 0 ||
        n.choice >= static_cast<int>(choices)) {
      throw error(errc::invalid_argument,
                  fmt::format("the {} tree asks for feature {} and chooses {}; there are {} "
                              "features and {} choices",
                              which, n.feature, n.choice, features, choices));
    }
  }
}

void require_count(std::span<const double> given, std::size_t needed, const char* what) {
  if (given.size() != needed) {
    throw error(errc::invalid_argument,
                fmt::format("{} values are given for the {} features; there are {} of these",
                            given.size(), what, needed));
  }
}

}  // namespace

selector::selector(schema what, decision_tree known, decision_tree gathered, decision_tree gather,
                   int fallback)
    : what_(std::move(what)),
      features_(what_),
      known_(std::move(known)),
      gathered_(std::move(gathered)),
      gather_(std::move(gather)),
      fallback_(fallback) {
  require_usable(what_);
  const std::size_t known_inputs = known_features(what_) + 1;
  require_fit(known_, "known", known_inputs, what_.candidates.size());
  require_fit(gathered_, "gathered", what_.features.size() + 1, what_.candidates.size());
  require_fit(gather_, "gather", known_inputs, 2);
  const bool present = fallback >= 0 && fallback < static_cast<int>(what_.candidates.size());
  if (!present || !what_.candidates[static_cast<std::size_t>(fallback)].guard.empty()) {
    throw error(errc::invalid_argument,
                fmt::format("candidate {} cannot be the fallback; it has to be one of {}, without "
                            "a guard",
                            fallback, what_.candidates.size()));
  }
}

std::vector<double> selector::inputs(std::span<const double> given, double iterations) const {
  std::vector<double> values = features_.complete(given);
  for (std::size_t f = 0; f < values.size(); ++f) {
    if (!std::isfinite(values[f])) {
      throw error(
          errc::invalid_argument,
          fmt::format("feature {} is {}; it has to be a finite number", what_.features[f].name,
                      std::isnan(values[f]) ? std::nan("") : values[f]));
    }
  }
  if (!(iterations > 0) || !std::isfinite(iterations)) {
    throw error(errc::invalid_argument,
                fmt::format("iterations is {}; it has to be a number above 0", iterations));
  }
  values.push_back(iterations);
  return values;
}

int selector::guarded(int candidate, std::span<const double> inputs) const {
  const auto features = inputs.first(inputs.size() - 1);
  return features_.allows(static_cast<std::size_t>(candidate), features) ? candidate : fallback_;
}

int selector::by_known(std::span<const double> known, double iterations) const {
  require_count(known, features_.given_known(), "known");
  const std::vector<double> values = inputs(known, iterations);
  return guarded(known_.choice(values), values);
}

int selector::by_gathered(std::span<const double> given, double iterations) const {
  require_count(given, features_.given(), "known and gathered");
  const std::vector<double> values = inputs(given, iterations);
  return guarded(gathered_.choice(values), values);
}

bool selector::gathers(std::span<const double> known, double iterations) const {
  require_count(known, features_.given_known(), "known");
  return features_.given() > features_.given_known() &&
         gather_.choice(inputs(known, iterations)) == 1;
}

choice selector::choose(std::span<const double> known, double iterations,
                        const std::function<std::vector<double>()>& gather) const {
  if (!gathers(known, iterations)) return {by_known(known, iterations), false};
  std::vector<double> given(known.begin(), known.end());
  const std::vector<double> more = gather();
  given.insert(given.end(), more.begin(), more.end());
  return {by_gathered(given, iterations), true};
}

std::string selector::explain(std::span<const double> given, double iterations) const {
  const bool complete = given.size() == features_.given();
  if (!complete) require_count(given, features_.given_known(), "known");
  const auto known = given.first(features_.given_known());
  std::string text;
  const auto walk = [&](const decision_tree& tree, const std::vector<double>& values) {
    for (const int at : tree.path(values)) {
      const decision_tree::node& n = tree.nodes()[static_cast<std::size_t>(at)];
      if (n.feature < 0) return n.choice;
      const auto f = static_cast<std::size_t>(n.feature);
      const bool last = f + 1 == values.size();
      text += fmt::format("  {} = {:.6g} {} {:.6g}\n", last ? "iterations" : what_.features[f].name,
                          values[f], values[f] <= n.threshold ? "<=" : ">", n.threshold);
    }
    return 0;
  };
  const std::vector<double> of_known = inputs(known, iterations);
  bool gather = false;
  if (features_.given() > features_.given_known()) {
    text += "Does gathering pay?\n";
    gather = walk(gather_, of_known) == 1;
    text += gather ? "  yes\n" : "  no\n";
  }
  if (gather && !complete) {
    text += "What is gathered was not given, so this is the choice without it.\n";
    gather = false;
  }
  text +=
      gather ? "Which candidate, by what was gathered?\n" : "Which candidate, by what is known?\n";
  const std::vector<double> values = gather ? inputs(given, iterations) : of_known;
  const int chosen = walk(gather ? gathered_ : known_, values);
  const auto name = [&](int c) { return what_.candidates[static_cast<std::size_t>(c)].name; };
  const int taken = guarded(chosen, values);
  if (taken != chosen) {
    text += fmt::format("  {} is refused by its guard, {}\n", name(chosen),
                        what_.candidates[static_cast<std::size_t>(chosen)].guard);
  }
  return text + fmt::format("  {}\n", name(taken));
}

}  // namespace untax::select
