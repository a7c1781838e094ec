#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/choice/table.hpp"

namespace untax::bench {

/// The pattern that is taken for a problem, whose times are given for those ways that look at them.
using chooser = std::function<pattern(const tuning_entry&)>;

/// A way of choosing, made from what was measured.
struct way {
  std::string name;
  std::function<chooser(const std::vector<tuning_table>&)> learn;
  bool rows_only = false;  ///< speaks of all_gather_gemm by rows only
};

/// Those that are compared:
///
/// - "interpolation": what ops/choice expects to be the quickest;
/// - "one tree", "a tree a family", "tree over expected times": of untax/select;
/// - "always ...": the single pattern that loses least over the tables;
/// - "async TP, ...": the published heuristic, where it fuses with the quickest fused pattern of
/// the problem itself, which no chooser can know, or with copy_engine, the pattern that is nearest
/// to what it was made for.
[[nodiscard]] std::vector<way> all_ways();

}  // namespace untax::bench
