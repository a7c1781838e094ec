#pragma once

#include <array>
#include <string>
#include <vector>

#include <untax/select/selector.hpp>

namespace untax::select {

/// One of the three trees, with the names of its features and choices.
struct named_tree {
  std::string name;      ///< "known", "gathered", "gather"
  std::string question;  ///< the question that the tree answers
  const decision_tree* tree;
  std::vector<std::string> features;
  std::vector<std::string> choices;
};

[[nodiscard]] inline std::array<named_tree, 3> trees_of(const selector& s) {
  std::vector<std::string> names = feature_names(s.what());
  std::vector<std::string> known(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(known_features(s.what())));
  names.emplace_back("iterations");
  known.emplace_back("iterations");
  std::vector<std::string> candidates;
  for (const candidate& c : s.what().candidates) candidates.push_back(c.name);
  return {
      named_tree{"gather", "Does gathering pay?", &s.gather_tree(), known, {"no", "yes"}},
      named_tree{"known", "Which candidate, by what is known?", &s.known_tree(), known, candidates},
      named_tree{"gathered", "Which candidate, by what was gathered?", &s.gathered_tree(), names,
                 candidates}};
}

}  // namespace untax::select
