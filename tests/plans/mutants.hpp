#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/comm/transfer_list.hpp"
#include "ops/common/device_schedule.hpp"
#include "tests/plans/cases.hpp"

// What was planned is changed in one place, and somebody has to notice without a GPU: the
// validator, which holds what kernels go by against lists and programs, or the schedule checker,
// which proves what the lists say. (Ranks that plan otherwise than others are what agreement.cpp is
// about.)
namespace plans_test {

using untax::comm::transfer;

inline constexpr int few_multiprocessors = 8;

/// How many mutants there were, who noticed them, and which nobody did.
struct tally {
  int all = 0;
  int by_validator = 0;
  int by_schedule = 0;
  std::vector<std::string> survivors;

  void count(const std::string& what, bool validator, bool schedule, bool ranks = false) {
    ++all;
    by_validator += validator ? 1 : 0;
    by_schedule += schedule ? 1 : 0;
    if (!validator && !schedule && !ranks) survivors.push_back(what);
  }
  void expect_none_left(int least, bool lists = true) const {
    std::string text;
    for (const std::string& one : survivors) text += "\n  " + one;
    EXPECT_TRUE(survivors.empty()) << survivors.size() << " of " << all << " survive:" << text;
    EXPECT_GE(all, least);
    EXPECT_EQ(by_schedule > 0, lists) << "the schedule checker alone sees some of lists";
    testing::Test::RecordProperty("mutants", all);
    testing::Test::RecordProperty("seen_by_the_schedule_checker", by_schedule);
  }
};

/// A change of an entry of a list; false where it would change nothing.
struct entry_change {
  const char* name;
  std::function<bool(std::vector<transfer>&, std::size_t, numbers&)> make;
};
[[nodiscard]] const std::vector<entry_change>& entry_changes();

/// Calls `look(name)` for each change of one entry of these lists that can be made, one at a time.
template <class Look>
void each_change(untax::comm::transfer_lists& lists, numbers& number, const Look& look) {
  if (lists.entries() == 0) return;
  for (const entry_change& change : entry_changes()) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      auto& list = lists.senders[static_cast<std::size_t>(
          number(0, static_cast<std::int64_t>(lists.senders.size()) - 1))];
      if (list.empty()) continue;
      const auto before = list;
      const auto at =
          static_cast<std::size_t>(number(0, static_cast<std::int64_t>(list.size()) - 1));
      const bool made = change.make(list, at, number);
      if (made) look(fmt::format("{} at entry {}", change.name, at));
      list = before;
      if (made) break;
    }
  }
}

template <class Models>
bool schedule_notices(const Models& models) {
  untax::device_findings found;
  prove(models, found);
  return !found.faults.empty();
}

inline std::string name_of_case(const char* name, std::int64_t m, int ranks,
                                const std::string& how) {
  return fmt::format("{}, m {}, {} ranks, {}", name, m, ranks, how);
}

}  // namespace plans_test
