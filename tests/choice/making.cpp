// Operators made from a choice: its first pattern, or the fastest after timing the likely ones.
#include "ops/choice/make_chosen.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
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
#include "ops/choice/measured_on.hpp"
#include "ops/choice/row_times.hpp"
#include "ops/common/row_table.hpp"
#include "sample.hpp"
#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace choice_test {
namespace {

using untax::environment;
using untax::errc;
using untax::operator_timer;
using untax::world;
using untax_test::error_of;
using untax_test::expect_error;

/// Stands for an operator in a pattern, for so many rows or any number up to that.
class stub final : public untax::device_operator {
 public:
  stub(world& w, pattern how, std::int64_t planned)
      : device_operator(w), most(planned), rows(planned), how_(how) {}
  void set_rows(std::int64_t of_run) override { rows = of_run; }
  void run(const void*, const void*, void*, untax::stream_ref) override {}
  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override { return "stub"; }

  const std::int64_t most;
  std::int64_t rows;

 private:
  pattern how_;
};

/// Tables have partials of bf16 and fp32 only, so that none has anything of this problem, and every
/// pattern is likely.
const tuned_problem unknown{.operator_name = "gemm_reduce_scatter",
                            .m = 64,
                            .n = 4096,
                            .k = 8192,
                            .partials = untax::dtype::f16};

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

  struct made_operator {
    std::shared_ptr<untax::device_operator> op;
    std::string reason;
    [[nodiscard]] pattern how() const { return op->how(); }
  };
  made_operator make(world& w, const environment& env) {
    const auto maker = [&](pattern how, std::int64_t rows) {
      made.push_back(how);
      if (refused.contains(how))
        throw untax::error(refused.at(how), fmt::format("no {} here", name_of(how)));
      return std::make_unique<stub>(w, how, rows);
    };
    const auto timer = [&]() -> operator_timer {
      if (!can_time) return {};
      return [this](untax::device_operator& op) {
        timed.push_back(op.how());
        return seconds.contains(op.how()) ? seconds.at(op.how()) : 1;
      };
    };
    const std::vector<std::int64_t> ends = {unknown.m};
    auto chosen =
        untax::make_chosen(w, unknown, ends, "GPU X", {.make = maker, .timer = timer}, env);
    EXPECT_EQ(chosen.by_rows.size(), 1U);
    return {chosen.by_rows.back().op, chosen.reason};
  }
};

void expect_says(const attempt::made_operator& result, const std::string& what) {
  EXPECT_NE(result.reason.find(what), std::string::npos) << result.reason;
}

TEST(making, without_timing_the_first_pattern_of_the_table_is_made) {
  untax::run_threads(2, [](world& w) {
    attempt a;
    const auto result = a.make(w, by_tables);
    EXPECT_EQ(a.made, std::vector{result.how()});
    EXPECT_TRUE(a.timed.empty());
  });
}

TEST(making, refused_patterns_are_skipped) {
  untax::run_threads(2, [](world& w) {
    attempt a;
    a.refused = {{pattern::bulk_library, errc::unsupported}};
    const auto result = a.make(w, by_tables);
    EXPECT_EQ(result.how(), pattern::fused_specialized);
    expect_says(result, "bulk_library is not possible: no bulk_library here");
  });
  const auto all_refused = [] {
    untax::run_threads(1, [](world& w) {
      attempt a;
      for (const pattern how : untax::all_patterns) a.refused[how] = errc::unsupported;
      (void)a.make(w, by_tables);
    });
  };
  expect_error(error_of(all_refused), errc::unsupported, {"no fused_specialized here"});
}

TEST(making, the_quickest_timed_pattern_is_taken) {
  untax::run_threads(2, [](world& w) {
    attempt a;
    a.seconds = {{pattern::copy_engine, 2e-5}, {pattern::fused_sequential, 3e-5}};
    const auto result = a.make(w, measuring);
    EXPECT_EQ(result.how(), pattern::copy_engine);
    EXPECT_EQ(a.timed.size(), std::size(untax::all_patterns) - 1);
    expect_says(result, "chosen by timing it here: copy_engine 20.0 us, fused_sequential 30.0 us");
    expect_says(result, "no table has anything");
  });
}

TEST(making, patterns_that_are_refused_or_do_not_fit_are_not_timed) {
  untax::run_threads(2, [](world& w) {
    attempt a;
    a.seconds = {{pattern::copy_engine, 2e-5}};
    a.refused = {{pattern::copy_engine, errc::unsupported},
                 {pattern::bulk_library, errc::out_of_memory}};
    const auto result = a.make(w, measuring);
    EXPECT_EQ(a.timed.size(), std::size(untax::all_patterns) - 3);
    EXPECT_EQ(result.how(), a.timed.front()) << "they take the same, so the likelier is taken";
    expect_says(result, "copy_engine is not possible: no copy_engine here");
    expect_says(result, "bulk_library is not possible: no bulk_library here");
  });
}

TEST(making, errors_other_than_refusals_are_not_skipped) {
  const auto broken = [] {
    untax::run_threads(1, [](world& w) {
      attempt a;
      a.refused = {{pattern::fused_sequential, errc::internal}};
      (void)a.make(w, measuring);
    });
  };
  expect_error(error_of(broken), errc::internal, {"no fused_sequential here"});
}

TEST(making, without_memory_for_timing_the_tables_choice_stays) {
  untax::run_threads(2, [](world& w) {
    attempt a;
    a.can_time = false;
    const auto result = a.make(w, measuring);
    EXPECT_EQ(a.made, std::vector{pattern::bulk_library});
    expect_says(result, "nothing was timed");
  });
}

/// A table of the user's that this build's kernels were measured with.
struct tuned_environment {
  explicit tuned_environment(tuning_table table) {
    table.kernels = untax::kernel_sources();
    std::ofstream(file.path()) << to_json(table);
  }
  [[nodiscard]] environment variables() const { return with({{"UNTAX_TUNE_TABLE", file.path()}}); }
  untax_test::temporary_file file;
};

TEST(making, a_measured_problem_is_not_timed) {
  const tuned_environment measured(sample_table());
  const tuned_problem known = sample_table().entries.front().problem;
  untax::run_threads(known.ranks, [&](world& w) {
    const std::vector<std::int64_t> ends = {known.m};
    const auto result = untax::make_chosen(
        w, known, ends, "GPU X",
        {.make = [&](pattern how,
                     std::int64_t rows) { return std::make_unique<stub>(w, how, rows); },
         .timer = []() -> operator_timer { throw untax::error(errc::internal, "it is timed"); }},
        measured.variables());
    EXPECT_NE(result.reason.find("the problem itself is there"), std::string::npos);
    EXPECT_EQ(result.by_rows.back().op->how(), pattern::bulk_library);
  });
}

TEST(making, the_variable_for_timing_is_0_or_1) {
  for (const char* const value : {"2", "-1"}) {
    untax::run_threads(1, [&](world& w) {
      expect_error(error_of([&] {
                     attempt a;
                     (void)a.make(w, with({{"UNTAX_MEASURE", value}}));
                   }),
                   errc::invalid_argument, {"UNTAX_MEASURE", value});
    });
  }
}

TEST(making, ranks_disagree_if_only_some_of_them_time) {
  const auto differ = [] {
    untax::run_threads(2, [](world& w) {
      attempt a;
      (void)a.make(w, w.rank() == 0 ? measuring : by_tables);
    });
  };
  expect_error(error_of(differ), errc::disagreement, {"what automatic stands for", "timed"});
}

/// A table says nothing of fewer rows.
TEST(making, a_measured_problem_is_timed_where_rows_vary) {
  const tuned_environment measured(sample_table());
  const tuned_problem known = sample_table().entries.front().problem;
  untax::run_threads(known.ranks, [&](world& w) {
    const std::vector<std::int64_t> ends = {known.m / 2, known.m};
    int timed = 0;
    const auto result = untax::make_chosen(
        w, known, ends, "GPU X",
        {.make = [&](pattern how,
                     std::int64_t rows) { return std::make_unique<stub>(w, how, rows); },
         .timer = [&]() -> operator_timer {
           return [&](untax::device_operator& op) {
             ++timed;
             return op.how() == pattern::fused_specialized ? 1e-6 : 2e-6;
           };
         }},
        measured.variables());
    EXPECT_GT(timed, 2);
    EXPECT_EQ(result.by_rows.back().op->how(), pattern::fused_specialized);
  });
}

/// One rank's attempt to make operators of a capacity. `seconds(how, rows, most)` are those of a
/// run of `rows` rows by an operator that was made for at most `most`.
struct capacity_attempt {
  std::function<double(pattern how, std::int64_t rows, std::int64_t most)> seconds;
  std::map<pattern, int> made;
  std::vector<std::int64_t> timed;  ///< rows of bulk_library

  untax::chosen_operators make(world& w, std::int64_t capacity, const environment& env) {
    tuned_problem problem = unknown;
    problem.m = capacity;
    const auto maker = [&](pattern how, std::int64_t rows) {
      ++made[how];
      return std::make_unique<stub>(w, how, rows);
    };
    const auto timer = [&]() -> operator_timer {
      return [&](untax::device_operator& op) {
        const auto& stub_operator = dynamic_cast<const stub&>(op);
        if (op.how() == pattern::bulk_library) timed.push_back(stub_operator.rows);
        return seconds(op.how(), stub_operator.rows, stub_operator.most);
      };
    };
    const auto usual = [](std::int64_t) { return std::vector{pattern::fused_sequential}; };
    const std::vector<std::int64_t> ends = untax::row_ends(capacity);
    return untax::make_chosen(w, problem, ends, "GPU X",
                              {.make = maker, .timer = timer, .usual = usual}, env);
  }
};

pattern pattern_at(const untax::chosen_operators& operators, std::int64_t rows) {
  return std::ranges::lower_bound(operators.by_rows, rows, {}, &untax::operator_up_to::rows)
      ->op->how();
}

TEST(making_capacities, a_few_numbers_of_rows_are_timed_and_decide_for_the_others) {
  untax::run_threads(2, [](world& w) {
    capacity_attempt attempt;
    // The library is the quicker one from 1000 rows on.
    attempt.seconds = [](pattern how, std::int64_t rows, std::int64_t) {
      const auto m = static_cast<double>(rows);
      return how == pattern::bulk_library ? 10e-6 * std::pow(m, 0.5) : 10e-9 * std::pow(m, 1.5);
    };
    const auto result = attempt.make(w, 16384, measuring);
    const std::vector<std::int64_t> of_all_patterns = {16384, 15872, 12288, 11776, 8192, 7936,
                                                       4096,  3968,  2048,  1984,  1024, 960,
                                                       512,   480,   256,   240,   128};
    ASSERT_GT(attempt.timed.size(), of_all_patterns.size());
    EXPECT_TRUE(std::equal(of_all_patterns.begin(), of_all_patterns.end(), attempt.timed.begin()))
        << fmt::format("{}", fmt::join(attempt.timed, ", "));
    for (const std::int64_t rows : {1, 5, 48, 100, 512, 768})
      EXPECT_EQ(pattern_at(result, rows), pattern::fused_sequential) << rows;
    for (const std::int64_t rows : {1025, 2000, 3072, 6000, 16384})
      EXPECT_EQ(pattern_at(result, rows), pattern::bulk_library) << rows;
    EXPECT_EQ(attempt.made[pattern::bulk_library], 1) << "one for all numbers of rows";
    for (const char* said :
         {"chosen by timing 9 of 58 numbers of rows here, and others", "16384 rows: bulk_library",
          "up to 1024 rows fused_sequential, up to 16384 rows bulk_library",
          "with as many rows as a plan has up to 896 rows fused_sequential, up to 16384",
          "no table has anything of gemm_reduce_scatter"})
      EXPECT_NE(result.reason.find(said), std::string::npos) << said << ": " << result.reason;
  });
}

TEST(making_capacities, numbers_of_rows_below_an_end_may_take_another_pattern) {
  untax::run_threads(2, [](world& w) {
    capacity_attempt attempt;
    // Own kernels are slow unless rows are whole tiles.
    attempt.seconds = [](pattern how, std::int64_t rows, std::int64_t) {
      const bool is_slow = how != pattern::bulk_library && rows % 256 != 0;
      return (how == pattern::bulk_library ? 1.5 : 1) * (is_slow ? 2 : 1) * 1e-8 *
             static_cast<double>(rows);
    };
    const auto result = attempt.make(w, 4096, measuring);
    for (const std::int64_t rows : {256, 512, 1024, 3072, 4096})
      EXPECT_EQ(pattern_at(result, rows), pattern::fused_sequential) << rows;
    for (const std::int64_t rows : {300, 513, 767, 1100, 3500, 4095})
      EXPECT_EQ(pattern_at(result, rows), pattern::bulk_library) << rows;
    EXPECT_EQ(attempt.made[pattern::bulk_library], 1) << "one for all numbers of rows";
    for (const char* said : {"up to 4096 rows bulk_library, with as many rows as a plan has ",
                             "up to 4096 rows fused_sequential, the timed patterns were"})
      EXPECT_NE(result.reason.find(said), std::string::npos) << said << ": " << result.reason;
  });
}

TEST(making_capacities, a_plan_slower_than_its_neighbours_suggest_is_not_chosen) {
  untax::run_threads(2, [](world& w) {
    capacity_attempt attempt;
    // What is made for 896 rows moves otherwise than its neighbours.
    attempt.seconds = [](pattern how, std::int64_t rows, std::int64_t most) {
      const double slower = how == pattern::bulk_library ? 1.3 : most == 896 ? 1.5 : 1;
      return slower * 1e-8 * static_cast<double>(rows);
    };
    const auto result = attempt.make(w, 4096, measuring);
    for (const std::int64_t rows : {700, 768, 897, 1024, 2000, 4096})
      EXPECT_EQ(pattern_at(result, rows), pattern::fused_sequential) << rows;
    for (const std::int64_t rows : {769, 800, 896})
      EXPECT_EQ(pattern_at(result, rows), pattern::bulk_library) << rows;
  });
}

TEST(making_capacities, without_timing_the_tables_choose) {
  untax::run_threads(2, [](world& w) {
    capacity_attempt attempt;
    const auto result = attempt.make(w, 1024, by_tables);
    EXPECT_TRUE(attempt.timed.empty());
    EXPECT_EQ(pattern_at(result, 1024), pattern::fused_sequential);
    EXPECT_EQ(result.by_rows.size(), untax::row_ends(1024).size());
    EXPECT_EQ(result.reason.find("up to 1024 rows fused_sequential, "), 0U) << result.reason;
  });
}

TEST(making_capacities, times_between_two_timed_plans_are_interpolated_on_the_tables) {
  // Both patterns cross twice between 256 and 4096 rows, which only the table knows.
  const std::vector<std::int64_t> ends = {256, 1024, 4096};
  std::vector<untax::choice> choices(3);
  const auto expect = [&](std::size_t at, double library, double own) {
    choices[at].times = {{pattern::bulk_library, library}, {pattern::fused_sequential, own}};
  };
  expect(0, 2e-5, 1e-5);
  expect(1, 3e-5, 5e-5);
  expect(2, 2e-4, 1e-4);
  const std::map<std::size_t, untax::pattern_times> timed = {
      {0, {{pattern::bulk_library, 2.2e-5}, {pattern::fused_sequential, 1.1e-5}}},
      {2, {{pattern::bulk_library, 2.1e-4}, {pattern::fused_sequential, 1.2e-4}}}};
  EXPECT_EQ(times_at(ends, timed, choices, 1).front().how, pattern::bulk_library);
  choices[1].times.clear();
  EXPECT_EQ(times_at(ends, timed, choices, 1).front().how, pattern::fused_sequential);
  EXPECT_EQ(times_at(ends, timed, choices, 0).front().how, pattern::fused_sequential);
  EXPECT_TRUE(times_at(ends, {}, choices, 1).empty());
}

}  // namespace
}  // namespace choice_test
