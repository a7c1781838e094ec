#include <algorithm>

#include "check_report.hpp"

namespace untax::cli {

bool check_report::right() const {
  return std::all_of(variants.begin(), variants.end(), [](const auto& v) { return v.right(); });
}

check_report check_protocols(const check_request& request) {
  check_report report;
  for (const protocol_variant& variant : request.variants) {
    const auto advance = [&] {
      if (request.progress) request.progress(variant.name);
    };
    variant_findings findings{variant, 0, 0, {}, {}};
    for (int ranks = 1; ranks <= most_ranks_of_schedules; ++ranks) {
      prove_schedules(findings, ranks, request.effort);
      advance();
    }
    for (const int ranks : request.effort.ranks) {
      explore_executions(findings, ranks, request.effort);
      advance();
    }
    hunt_mutants(findings, request.effort);
    advance();
    report.variants.push_back(std::move(findings));
  }
  return report;
}

int steps_of(const check_request& request) {
  const std::size_t each = most_ranks_of_schedules + request.effort.ranks.size() + 1;
  return static_cast<int>(request.variants.size() * each);
}

}  // namespace untax::cli
