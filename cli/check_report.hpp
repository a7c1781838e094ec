#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/common/model_check.hpp"

namespace untax::cli {

/// The request of `untax check`.
struct check_request {
  std::vector<protocol_variant> variants;
  check_effort effort;
  /// Called `steps_of` times, with the name of the variant. May be empty.
  std::function<void(const std::string& label)> progress;
};

struct check_report {
  std::vector<variant_findings> variants;

  [[nodiscard]] bool right() const;
};

/// Proves the schedules, explores the executions and hunts the mutants of all variants.
[[nodiscard]] check_report check_protocols(const check_request& request);

[[nodiscard]] int steps_of(const check_request& request);

}  // namespace untax::cli
