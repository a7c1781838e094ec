#include "tests/plans/cases.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "tests/plans/planned.hpp"

namespace plans_test {
namespace {

using namespace untax;

constexpr unsigned usual_seeds = 3;
constexpr int rounds = 48;
/// Those of whole GPUs, and of parts of one that ranks share.
constexpr int sm_counts[] = {132, 132, 114, 66, 32};

/// What somebody may ask for: mostly nothing.
operator_options some_options(pattern how, numbers& number) {
  operator_options options;
  options.how = how;
  const auto some = [&] {
    return static_cast<int>(number(1, number(0, 1) == 0 ? 4 : 2 * num_sms));
  };
  if (number(0, 3) == 0) options.workers = some();
  if (number(0, 3) == 0) options.senders = some();
  return options;
}

std::int64_t some_rows(numbers& number) {
  constexpr std::int64_t most[] = {16, 64, 300, 1200, 9000};
  return number(1, number.one_of(most));
}
/// A multiple of 8, a power of two at times: sizes of models.
std::int64_t some_columns(numbers& number) {
  constexpr std::int64_t usual[] = {512, 1024, 2048, 3584, 7168, 8192};
  return number(0, 2) == 0 ? number.one_of(usual) : 8 * number(1, number(0, 1) == 0 ? 60 : 1125);
}

/// The plans that `make` makes; none where it refuses, which it does only if it may take one block,
/// and there are clusters of two.
template <class Make>
auto plans_or_none(const Make& make, const operator_options& options, std::int64_t rows) {
  try {
    return make();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find("2 would do"), std::string::npos) << e.what();
    EXPECT_EQ(options.workers, 1);
    EXPECT_GT(rows, 64);
    return decltype(make()){};
  }
}

/// A case of a world: `make(rank)` plans, `wrap(plan, rank)` says what for.
template <class Case, class Make, class Wrap>
Case case_of(int world, int chooser, const Make& make, const Wrap& wrap) {
  Case all;
  for (int rank = 0; rank < world; ++rank) {
    auto plans = make(rank);
    if (plans.empty()) break;
    all.ranks.push_back(wrap(plans.front(), rank));
    if (rank != chooser) continue;
    for (std::size_t i = 1; i < plans.size(); ++i) all.others.push_back(wrap(plans[i], rank));
  }
  return all;
}

/// Where a case is made of: who chooses among all plans, of a GPU with so many multiprocessors.
struct place_of_plans {
  int world;
  int chooser;
  int num_sms;
};
place_of_plans some_place(numbers& number) {
  const auto world = static_cast<int>(number(1, 8));
  const auto chooser = static_cast<int>(number(0, world - 1));
  return {world, chooser, number.one_of(sm_counts)};
}

gather_case gather_of(const all_gather_gemm_problem& problem, const operator_options& options,
                      const place_of_plans& where) {
  const int world = where.world;
  const int places = where.num_sms;
  const auto make = [&](int rank) {
    return plans_or_none([&] { return gather_plans(problem, world, rank, options, places); },
                         options, problem.m);
  };
  const auto wrap = [&](const gather_plan& plan, int rank) {
    return planned_gather{
        problem,
        options,
        places,
        plan,
        all_gather_gemm_protocol(problem, plan.protocol),
        fmt::format("all_gather_gemm {} x {} x {}, gather {}, rank {} of {}, {}, {} workers, {} "
                    "senders, {} SMs: {}",
                    problem.m, problem.n, problem.k, name_of(problem.gather), rank, world,
                    name_of(options.how), options.workers, options.senders, places, plan.text())};
  };
  return case_of<gather_case>(world, where.chooser, make, wrap);
}
gather_case some_gather(numbers& number, pattern how) {
  const all_gather_gemm_problem problem{
      .m = some_rows(number),
      .n = some_columns(number),
      .k = some_columns(number),
      .gather = number(0, 1) == 0 ? gather_axis::rows : gather_axis::k};
  operator_options options = some_options(how, number);
  options.move = number(0, 3) == 0 ? direction::pull : direction::push;
  return gather_of(problem, options, some_place(number));
}

scatter_case scatter_of(const gemm_all_scatter_problem& problem, const operator_options& options,
                        const place_of_plans& where) {
  const int world = where.world;
  const int places = where.num_sms;
  const auto make = [&](int rank) {
    return plans_or_none([&] { return scatter_plans(problem, world, rank, options, places); },
                         options, problem.m);
  };
  const auto wrap = [&](const scatter_plan& plan, int rank) {
    return planned_scatter{
        problem,
        options,
        places,
        plan,
        gemm_all_scatter_protocol(problem, plan.protocol),
        fmt::format("gemm_all_scatter {} x {} x {}, rank {} of {}, {}, {} workers, {} senders, {} "
                    "SMs: {}",
                    problem.m, problem.n, problem.k, rank, world, name_of(options.how),
                    options.workers, options.senders, places, plan.text())};
  };
  return case_of<scatter_case>(world, where.chooser, make, wrap);
}
scatter_case some_scatter(numbers& number, pattern how) {
  const gemm_all_scatter_problem problem{some_rows(number), some_columns(number),
                                         some_columns(number)};
  const operator_options options = some_options(how, number);
  return scatter_of(problem, options, some_place(number));
}

/// Sizes of models, on whole GPUs, as they are planned where nothing is asked for.
constexpr std::int64_t usual_rows[] = {16, 128, 512, 1024, 4096};
/// Calls `add(m, n, world, how)` for these.
template <class Add>
void each_usual(const Add& add) {
  int number = 0;
  for (const std::int64_t m : usual_rows) {
    for (const pattern how : own_patterns) {
      ++number;
      add(m, number % 2 == 0 ? 3584 : 7168, number % 3 == 0 ? 4 : 2, how);
    }
  }
}

template <class Case, class Make>
std::vector<Case> all_cases(const Make& make) {
  std::vector<Case> cases;
  for (const unsigned seed : seeds()) {
    numbers number(seed);
    for (int round = 0; round < rounds; ++round)
      cases.push_back(make(number, own_patterns[static_cast<std::size_t>(round) % 6]));
  }
  return cases;
}

}  // namespace

const std::vector<unsigned>& seeds() {
  static const std::vector<unsigned> all = [] {
    const char* more = std::getenv("UNTAX_PLAN_SEEDS");
    const auto count =
        usual_seeds + (more == nullptr ? 0U : static_cast<unsigned>(std::atoi(more)));
    std::vector<unsigned> list;
    for (unsigned seed = 1; seed <= count; ++seed) list.push_back(seed);
    return list;
  }();
  return all;
}

const std::vector<gather_case>& gather_cases() {
  static const auto all = [] {
    auto cases = all_cases<gather_case>(some_gather);
    each_usual([&](std::int64_t m, std::int64_t n, int world, pattern how) {
      operator_options options;
      options.how = how;
      for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
        cases.push_back(
            gather_of({.m = m, .n = n, .k = 8192, .gather = gather}, options, {world, 0, num_sms}));
    });
    return cases;
  }();
  return all;
}
const std::vector<scatter_case>& scatter_cases() {
  static const auto all = [] {
    auto cases = all_cases<scatter_case>(some_scatter);
    each_usual([&](std::int64_t m, std::int64_t n, int world, pattern how) {
      operator_options options;
      options.how = how;
      cases.push_back(scatter_of({m, 2 * n, 4096}, options, {world, 0, num_sms}));
    });
    return cases;
  }();
  return all;
}

}  // namespace plans_test
