// What is made of a choice: as it is, or after timing what is likely.
#include "ops/choice/make_chosen.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/choice/choose.hpp"
#include "sample.hpp"
#include "tests/errors.hpp"

namespace choice_test {
namespace {

using untax::environment;
using untax::errc;
using untax::operator_timer;
using untax::world;
using untax_test::error_of;
using untax_test::expect_error;

/// Stands for an operator in a pattern.
class stub final : public untax::device_operator {
 public:
  explicit stub(pattern how) : how_(how) {}
  void run(const void*, const void*, void*, untax::stream_ref) override {}
  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override { return "stub"; }

 private:
  pattern how_;
};

/// No table has anything of the operator, so that every pattern is likely.
const tuned_problem unknown{"gemm_reduce_scatter", gather_axis::rows, 2, 64, 4096, 8192};

environment with(std::map<std::string, std::string> values) {
  return environment(std::move(values));
}
const environment by_tables = with({{"UNTAX_MEASURE", "0"}});
const environment measuring = with({});

/// One rank's attempt to make an operator of `unknown`.
struct attempt {
  std::vector<pattern> made;
  std::vector<pattern> timed;
  std::map<pattern, errc> refused;
  std::map<pattern, double> seconds;  ///< 1 where there is none
  bool can_time = true;

  std::unique_ptr<untax::device_operator> make(world& w, const environment& env) {
    const auto maker = [&](pattern how) {
      made.push_back(how);
      if (refused.contains(how))
        throw untax::error(refused.at(how), fmt::format("no {} here", name_of(how)));
      return std::make_unique<stub>(how);
    };
    const auto timer = [&]() -> operator_timer {
      if (!can_time) return {};
      return [this](untax::device_operator& op) {
        timed.push_back(op.how());
        return seconds.contains(op.how()) ? seconds.at(op.how()) : 1;
      };
    };
    return untax::make_chosen(w, unknown, "GPU X", maker, timer, env);
  }
};

void expect_says(const untax::device_operator& made, const std::string& what) {
  EXPECT_NE(made.text().find(what), std::string::npos) << made.text();
}

TEST(making, the_first_is_made_and_nothing_is_timed_if_tables_are_to_choose) {
  untax::run_threads(2, [](world& w) {
    attempt one;
    const auto made = one.make(w, by_tables);
    EXPECT_EQ(one.made, std::vector{made->how()});
    EXPECT_TRUE(one.timed.empty());
  });
}

TEST(making, what_is_refused_is_passed_over) {
  untax::run_threads(2, [](world& w) {
    attempt one;
    one.refused = {{pattern::bulk_library, errc::unsupported}};
    const auto made = one.make(w, by_tables);
    EXPECT_EQ(made->how(), pattern::fused_specialized);
    expect_says(*made, "bulk_library is not possible: no bulk_library here");
  });
  const auto all_refused = [] {
    untax::run_threads(1, [](world& w) {
      attempt one;
      for (const pattern how : untax::all_patterns) one.refused[how] = errc::unsupported;
      (void)one.make(w, by_tables);
    });
  };
  expect_error(error_of(all_refused), errc::unsupported, {"no fused_specialized here"});
}

TEST(making, the_quickest_is_taken_of_those_that_are_timed) {
  untax::run_threads(2, [](world& w) {
    attempt one;
    one.seconds = {{pattern::copy_engine, 2e-5}, {pattern::fused_sequential, 3e-5}};
    const auto made = one.make(w, measuring);
    EXPECT_EQ(made->how(), pattern::copy_engine);
    EXPECT_EQ(one.timed.size(), std::size(untax::all_patterns) - 1);
    expect_says(*made, "chosen by timing it here: copy_engine 20.0 us, fused_sequential 30.0 us");
    expect_says(*made, "no table has anything");
  });
}

TEST(making, what_is_refused_or_does_not_fit_is_not_timed) {
  untax::run_threads(2, [](world& w) {
    attempt one;
    one.seconds = {{pattern::copy_engine, 2e-5}};
    one.refused = {{pattern::copy_engine, errc::unsupported},
                   {pattern::bulk_library, errc::out_of_memory}};
    const auto made = one.make(w, measuring);
    EXPECT_EQ(one.timed.size(), std::size(untax::all_patterns) - 3);
    EXPECT_EQ(made->how(), one.timed.front()) << "they take the same, so the likelier is taken";
    expect_says(*made, "copy_engine is not possible: no copy_engine here");
    expect_says(*made, "bulk_library is not possible: no bulk_library here");
  });
}

TEST(making, other_errors_are_not_passed_over) {
  const auto broken = [] {
    untax::run_threads(1, [](world& w) {
      attempt one;
      one.refused = {{pattern::fused_sequential, errc::internal}};
      (void)one.make(w, measuring);
    });
  };
  expect_error(error_of(broken), errc::internal, {"no fused_sequential here"});
}

TEST(making, without_memory_to_time_in_the_choice_stays_as_it_is) {
  untax::run_threads(2, [](world& w) {
    attempt one;
    one.can_time = false;
    const auto made = one.make(w, measuring);
    EXPECT_EQ(one.made, std::vector{pattern::bulk_library});
    expect_says(*made, "nothing was timed");
  });
}

TEST(making, a_problem_that_was_measured_is_not_timed) {
  const auto& table = untax::built_in_tables().front();
  const tuned_problem& known = table.entries.front().problem;
  untax::run_threads(known.ranks, [&](world& w) {
    const auto made = untax::make_chosen(
        w, known, table.device, [](pattern how) { return std::make_unique<stub>(how); },
        []() -> operator_timer { throw untax::error(errc::internal, "it is timed"); }, measuring);
    EXPECT_NE(made->text().find("the problem itself is there"), std::string::npos);
  });
}

TEST(making, whether_to_time_is_0_or_1) {
  for (const char* const value : {"2", "-1"}) {
    untax::run_threads(1, [&](world& w) {
      expect_error(error_of([&] {
                     attempt one;
                     (void)one.make(w, with({{"UNTAX_MEASURE", value}}));
                   }),
                   errc::invalid_argument, {"UNTAX_MEASURE", value});
    });
  }
}

TEST(making, ranks_that_differ_in_whether_they_time_disagree) {
  const auto differ = [] {
    untax::run_threads(2, [](world& w) {
      attempt one;
      (void)one.make(w, w.rank() == 0 ? measuring : by_tables);
    });
  };
  expect_error(error_of(differ), errc::disagreement, {"what automatic stands for", "timed"});
}

}  // namespace
}  // namespace choice_test
