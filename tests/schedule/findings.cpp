// The texts of the checker about plans that are wrong in one step, word for word: authors of
// protocols find their mistakes by them. After an intended change findings.txt is written with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/schedule_test --gtest_filter='findings.*'
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/schedule/check.hpp"
#include "ops/checks.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/operators.hpp"
#include "tests/schedule/broken.hpp"
#include "tests/wanted_lines.hpp"

namespace untax::test {
namespace {

constexpr std::string_view file = "tests/schedule/findings.txt";

struct mistake {
  std::string_view name;
  std::function<bool(step&)> make;  // false: this step cannot have it
};

bool changed(std::int64_t& number, std::int64_t difference) {
  number += difference;
  return true;
}

/// A mistake that needs a room.
template <class Change>
std::function<bool(step&)> in_room(room step::*which, const Change& change) {
  return [=](step& s) {
    if (!(s.*which).named()) return false;
    change(s.*which);
    return true;
  };
}

std::vector<mistake> mistakes() {
  const auto moves = [](const step& s) { return s.what != action::none && s.rows > 0; };
  std::vector<mistake> entries = {
      {"reads a row below", [=](step& s) { return moves(s) && changed(s.from.row, 1); }},
      {"reads a column aside", [=](step& s) { return moves(s) && changed(s.from.col, 1); }},
      {"reads rows far away", [=](step& s) { return moves(s) && changed(s.from.row, 100'000); }},
      {"reads other weights",
       [](step& s) { return s.what == action::multiply && changed(s.weights.row, 1); }},
      {"writes a row below", [=](step& s) { return moves(s) && changed(s.to.row, 1); }},
      {"writes a column aside", [=](step& s) { return moves(s) && changed(s.to.col, 1); }},
      {"writes a row above", [=](step& s) { return moves(s) && changed(s.to.row, -1); }},
      {"has a row less", [=](step& s) { return moves(s) && changed(s.rows, -1); }},
      {"has a column more", [=](step& s) { return moves(s) && changed(s.cols, 1); }},
      {"has no column", [=](step& s) { return moves(s) && changed(s.cols, -s.cols); }},
      {"is not as deep", [](step& s) { return s.depth > 1 && changed(s.depth, -1); }},
      {"begins anew, or does not", [=](step& s) { return moves(s) && (s.first = !s.first, true); }},
      {"ends, or does not", [=](step& s) { return moves(s) && (s.last = !s.last, true); }},
      {"writes at another rank",
       [=](step& s) { return moves(s) && s.to.rank >= 0 && (s.to.rank = 1 - s.to.rank, true); }},
      {"reads at another rank",
       [=](step& s) {
         return moves(s) && s.from.rank >= 0 && (s.from.rank = 1 - s.from.rank, true);
       }},
      {"does nothing", [=](step& s) { return moves(s) && (s.what = action::none, true); }},
  };
  struct verb {
    std::string_view name;
    room step::*where;
  };
  for (const auto& [name, where] :
       {verb{"reserve", &step::reserve}, verb{"acquire", &step::acquire},
        verb{"publish", &step::publish}, verb{"retire", &step::retire}}) {
    entries.push_back({name, in_room(where, [](room& r) { r = {}; })});
    entries.push_back({name, in_room(where, [](room& r) { ++r.use; })});
    entries.push_back({name, in_room(where, [](room& r) { ++r.ready, ++r.free; })});
    entries.push_back({name, in_room(where, [](room& r) { std::swap(r.producer, r.consumer); })});
    entries.push_back({name, in_room(where, [](room& r) { ++r.readers; })});
  }
  return entries;
}

class findings {
 public:
  void add(const protocol_variant& variant) {
    const auto cases = variant.schedule_cases(2, true);
    for (const mistake& m : mistakes()) {
      // Of so many mistakes a variant meets each fifth.
      if (random_() % 5 != 0) continue;
      const schedule_case& c = cases[random_() % cases.size()];
      auto plans = c.plans();
      const std::uint64_t chosen = random_();
      std::uint64_t possible = 0;
      for (int round = 0; round < 2; ++round) {  // counts first
        std::uint64_t nth = 0;
        for (schedule::rank_plan& plan : plans) {
          edit_steps(plan, [&](step& s) {
            step tried = s;
            if (!m.make(tried)) return;
            if (round == 0) ++possible;
            if (round == 1 && nth++ == chosen % possible) s = tried;
          });
        }
        if (possible == 0) break;
      }
      if (possible > 0) lines.push_back(line_of(c.name, m.name, schedule::check_schedule(plans)));
    }
    // Mutants in which only one kind of verb orders accesses.
    const auto plans = cases.front().plans();
    for (const channel_verb kept : {channel_verb::acquire, channel_verb::reserve}) {
      lines.push_back(
          line_of(cases.front().name, schedule::name_of(kept),
                  schedule::check_schedule(
                      plans, [kept](const schedule::step_position& /*at*/, const step& /*s*/,
                                    channel_verb verb) { return verb == kept; })));
    }
  }

  std::vector<std::string> lines;

 private:
  static std::string line_of(std::string_view name, std::string_view what,
                             const schedule::schedule_report& report) {
    std::uint64_t print = 0xCBF29CE484222325U;
    for (const std::string& text : report.problems) {
      for (const char letter : text)
        print = (print ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    }
    return fmt::format("{}: {}: {} steps, {} waits, {} problems, {:016x}{}", name, what,
                       report.steps, report.waits, report.problems.size(), print,
                       report.ok() ? "" : ": " + report.problems.front());
  }

  std::mt19937_64 random_{11};
};

TEST(findings, plans_that_do_not_belong_together_are_named) {
  const auto plans =
      variants_of(operators().front()).front().schedule_cases(2, true).front().plans();
  const auto says = [](const std::vector<schedule::rank_plan>& rank_plans, std::string_view text) {
    const auto report = schedule::check_schedule(rank_plans);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.problems.front(), text);
  };
  says({plans[1], plans[0]}, "plan 0 of 2 is for rank 1 of 2");
  says({plans[0], plans[0]}, "plan 1 of 2 is for rank 0 of 2");
  says({plans[0]}, "plan 0 of 1 is for rank 0 of 2");
}

TEST(findings, equal_the_recorded_texts) {
  findings f;
  for (const operator_spec& operation : operator_specs())
    for (const protocol_variant& variant : variants_of(operation)) f.add(variant);
  for (std::string& line : f.lines) std::ranges::replace(line, '\n', ' ');
  untax_test::expect_wanted_lines(file, f.lines);
}

}  // namespace
}  // namespace untax::test
