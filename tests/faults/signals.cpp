// Signals that are lost, late or repeated, for every operator and pattern on thread worlds.
#include <gtest/gtest.h>

#include <atomic>

#include "trial.hpp"

namespace untax::testing {
namespace {

fault make(fault_kind kind, const fault_site& site, std::chrono::milliseconds duration) {
  fault f = fault::at(kind, site);
  f.duration = duration;
  return f;
}

TEST(signals, a_dropped_signal_is_harmless_or_named) {
  std::atomic<int> failed = 0;
  for_sampled_sites("drop", 3, true, [&](const faulty_case& c, const fault_site& site) {
    failed += expect_right_or_named(c, fault::at(fault_kind::drop, site)).failed() ? 1 : 0;
  });
  EXPECT_GT(failed, 0) << "most signals are waited for";
}

TEST(signals, a_signal_after_the_limit_is_harmless_or_named) {
  for_sampled_sites("delay beyond the limit", 1, true,
                    [](const faulty_case& c, const fault_site& site) {
                      expect_right_or_named(c, make(fault_kind::delay, site, short_limit * 2));
                    });
}

TEST(signals, a_delayed_signal_changes_nothing) {
  for_sampled_sites("delay", 4, true, [](const faulty_case& c, const fault_site& site) {
    expect_right(c, make(fault_kind::delay, site, std::chrono::milliseconds(8)));
  });
}

TEST(signals, a_repeated_signal_changes_nothing) {
  for_sampled_sites("duplicate", 15, true, [](const faulty_case& c, const fault_site& site) {
    expect_right(c, fault::at(fault_kind::duplicate, site));
  });
}

TEST(signals, an_old_signal_that_comes_again_changes_nothing) {
  for_sampled_sites("late duplicate", 15, true, [](const faulty_case& c, const fault_site& site) {
    expect_right(c, fault::at(fault_kind::late_duplicate, site));
  });
}

}  // namespace
}  // namespace untax::testing
