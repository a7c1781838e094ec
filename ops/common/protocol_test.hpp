#pragma once

#include <gtest/gtest.h>

#include "ops/common/model_check.hpp"

namespace untax::testing {

/// Calls `look(findings)` for every variant of an operator and expects that nothing was found.
/// `Entry` is the argument of some `variants_of`.
template <class Entry, class Look>
void check_variants(const Entry& entry, Look&& look) {
  for (const protocol_variant& variant : variants_of(entry)) {
    SCOPED_TRACE(variant.name);
    variant_findings findings{variant, 0, 0, {}, {}};
    look(findings);
    for (const std::string& trouble : findings.troubles()) ADD_FAILURE() << trouble;
  }
}

/// Every schedule of the grid ends, does not race and is complete.
template <class Entry>
void check_schedules(const Entry& entry, const check_effort& effort = {}) {
  check_variants(entry, [&](variant_findings& findings) {
    for (int ranks = 1; ranks <= most_ranks_of_schedules; ++ranks) {
      prove_schedules(findings, ranks, effort);
    }
    EXPECT_GT(findings.schedules, 0U);
  });
}

/// No execution of any variant gives a wrong result, races or gets stuck.
template <class Entry>
void check_executions(const Entry& entry, const check_effort& effort = {}) {
  check_variants(entry, [&](variant_findings& findings) {
    for (const int ranks : effort.ranks) explore_executions(findings, ranks, effort);
    EXPECT_GT(findings.executions, 0U);
  });
}

/// Every protocol fails without one of its verbs, and with one that orders nothing.
template <class Entry>
void check_mutants(const Entry& entry, const check_effort& effort = {}) {
  check_variants(entry, [&](variant_findings& findings) {
    hunt_mutants(findings, effort);
    EXPECT_GT(findings.mutants.size(), 0U);
  });
}

}  // namespace untax::testing
