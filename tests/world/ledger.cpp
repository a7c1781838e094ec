// The ledger names the first call that differs, or says that it cannot know it.
#include <random>

#include <fmt/format.h>

#include <untax/flow/agreement.hpp>

#include "support.hpp"

namespace {

using untax::agreement;
using untax::errc;
using untax::ledger_entries;
using untax::ledger_line;
using world_test::error_of;
using world_test::expect_error;
using world_test::lone_control;

using calls = std::vector<std::string>;

calls numbered(int count) {
  calls result;
  for (int i = 1; i <= count; ++i) result.push_back(fmt::format("call {}", i));
  return result;
}

/// Rank `ahead` makes all its calls, then the other one makes its own; returns what that one
/// throws.
auto error_of_second(const lone_control& c, int ahead, const calls& of_0, const calls& of_1) {
  agreement one(c.view, ahead);
  for (const std::string& call : ahead == 0 ? of_0 : of_1) one.post(call);
  return error_of([&] {
    agreement two(c.view, 1 - ahead);
    for (const std::string& call : ahead == 0 ? of_1 : of_0) two.post(call);
  });
}

TEST(ledger, the_first_difference_is_named_while_both_ranks_keep_it) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const int count = 1 + static_cast<int>(random() % ledger_entries);
    const int at = static_cast<int>(random() % static_cast<unsigned>(count));
    const calls right = numbered(count);
    calls wrong = right;
    wrong[at] = "something else";
    // Whether later calls differ, too, changes nothing.
    if (trial % 2 == 0) wrong.back() = "another thing";
    const lone_control c(2);
    expect_error(error_of_second(c, trial / 2 % 2, right, wrong), errc::disagreement,
                 {fmt::format("their collective call number {} differs:", at + 1),
                  fmt::format("\n  rank 0: {}\n  rank 1: {}\n", right[at], wrong[at])});
  }
}

TEST(ledger, the_first_difference_is_named_also_when_it_is_found_late) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 2 + static_cast<int>(random() % (ledger_entries - 1));
    const int at = static_cast<int>(random() % static_cast<unsigned>(count));
    const calls right = numbered(count);
    calls wrong = right;
    for (int i = at; i < count; ++i) {
      if (i == at || random() % 2 == 0) wrong[i] = "something else";
    }
    const lone_control c(2);
    agreement one(c.view, 0);
    for (const std::string& call : right) one.post(call);
    // All that rank 1 has done becomes visible at once.
    const lone_control apart(2);
    agreement two(apart.view, 1);
    for (const std::string& call : wrong) two.post(call);
    for (int i = 1; i <= count; ++i)
      c.view.post(1, *apart.view.posted_at(1, static_cast<std::uint64_t>(i)));
    expect_error(error_of([&] { one.compare(); }), errc::disagreement,
                 {fmt::format("their collective call number {} differs:", at + 1),
                  fmt::format("\n  rank 0: {}\n  rank 1: something else\n", right[at])});
    const auto report = c.view.report();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->reporter, 0);
    EXPECT_EQ(report->suspect, 1);
  }
}

TEST(ledger, a_difference_that_is_no_longer_kept_is_not_blamed_on_equal_calls) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    const int count = 2 * ledger_entries + static_cast<int>(random() % 40);
    const int kept_from = count - ledger_entries + 1;
    const int at = static_cast<int>(random() % static_cast<unsigned>(kept_from - 1));
    const calls right = numbered(count);
    calls wrong = right;
    wrong[at] = "something else";
    const lone_control c(2);
    // The first of the calls that rank 0 still keeps is where rank 1 learns of it.
    expect_error(error_of_second(c, 0, right, wrong), errc::disagreement,
                 {fmt::format("a call before number {} differed, and its text is no longer kept; "
                              "number {} is the same again:",
                              kept_from, kept_from),
                  fmt::format("\n  rank 0: call {}\n  rank 1: call {}\n", kept_from, kept_from)});
  }
}

TEST(ledger, behind_an_old_difference_the_first_that_is_kept_is_named) {
  const int count = 3 * ledger_entries;
  const calls right = numbered(count);
  for (int later = 1; later < 10; ++later) {
    calls wrong = right;
    wrong[3] = "something else";
    wrong[count - ledger_entries + later] = "another thing";
    const lone_control c(2);
    // Rank 1 is stopped at the first call that it can compare, and so has not come to the later
    // one.
    expect_error(error_of_second(c, 0, right, wrong), errc::disagreement,
                 {"no longer kept", "is the same again:"});
    calls at_once = right;
    at_once[3] = "something else";
    at_once[count - ledger_entries] = "another thing";
    const lone_control d(2);
    expect_error(
        error_of_second(d, 0, right, at_once), errc::disagreement,
        {fmt::format("before number {} differed", count - ledger_entries + 1),
         fmt::format("number {} differs, too:\n  rank 0: call {}\n  rank 1: another thing\n",
                     count - ledger_entries + 1, count - ledger_entries + 1)});
  }
}

TEST(ledger, long_calls_show_how_they_begin_and_end) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t size = ledger_line::longest_call + 1 + random() % 1000;
    std::string right(size, 'x');
    std::string wrong = right;
    const std::size_t at = trial % 3 == 0   ? random() % 200
                           : trial % 3 == 1 ? size - 1 - random() % 200
                                            : size / 2;
    wrong[at] = 'Y';
    const lone_control c(2);
    const auto e = error_of_second(c, 0, {"one", right}, {"one", wrong});
    expect_error(e, errc::disagreement, {"call number 2 differs:", "bytes] xxx"});
    const std::string text = e.what();
    EXPECT_EQ(text.find('Y') != std::string::npos, trial % 3 != 2) << text;
    EXPECT_EQ(text.find("they differ in the bytes that are left out") != std::string::npos,
              trial % 3 == 2)
        << text;
  }
}

TEST(ledger, calls_that_just_fit_are_shown_whole) {
  for (std::size_t size = ledger_line::longest_call - 9; size <= ledger_line::longest_call;
       ++size) {
    const std::string right(size, 'x');
    std::string wrong = right;
    wrong.back() = 'y';
    const lone_control c(2);
    expect_error(error_of_second(c, 1, {right}, {wrong}), errc::disagreement,
                 {"\n  rank 0: " + right + "\n", "\n  rank 1: " + wrong + "\n"});
  }
}

TEST(ledger, equal_calls_cause_no_error) {
  std::mt19937_64 random(4);
  const lone_control c(4);
  std::vector<agreement> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(c.view, rank);
  std::vector<int> come(4);
  for (int step = 0; step < 2000; ++step) {
    const std::size_t rank = random() % 4;
    ranks[rank].post(fmt::format("call {}", ++come[rank]));
    ranks[random() % 4].compare();
  }
  EXPECT_FALSE(c.view.stopped());
}

}  // namespace
