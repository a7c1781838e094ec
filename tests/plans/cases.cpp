#include "tests/plans/cases.hpp"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

namespace plans_test {
namespace {

using namespace untax;

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

std::string text_of(const all_gather_gemm_problem& p) {
  return fmt::format("all_gather_gemm {} x {} x {}, gather {}", p.m, p.n, p.k, name_of(p.gather));
}
std::string text_of(const gemm_all_scatter_problem& p) {
  return fmt::format("gemm_all_scatter {} x {} x {}", p.m, p.n, p.k);
}
constexpr auto plans_of(const planned_gather*) { return gather_plans; }
constexpr auto plans_of(const planned_scatter*) { return scatter_plans; }

/// What a world plans for a problem. It is refused only if it may take one block, and there are
/// clusters of two.
template <class Planned, class Problem>
world_case<Planned> case_of(const Problem& problem, const operator_options& options,
                            const place_of_plans& where) {
  world_case<Planned> all;
  const auto add = [&](std::vector<Planned>& to, const auto& plan, int rank) {
    to.push_back({problem,
                  options,
                  where.num_sms,
                  plan,
                  {problem, plan.protocol},
                  fmt::format("{}, rank {} of {}, {}, {} workers, {} senders, {} SMs: {}",
                              text_of(problem), rank, where.world, name_of(options.how),
                              options.workers, options.senders, where.num_sms, plan.text())});
  };
  try {
    for (int rank = 0; rank < where.world; ++rank) {
      const auto plans = plans_of(static_cast<const Planned*>(nullptr))(problem, where.world, rank,
                                                                        options, where.num_sms);
      add(all.ranks, plans.front(), rank);
      for (std::size_t i = 1; rank == where.chooser && i < plans.size(); ++i)
        add(all.others, plans[i], rank);
    }
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find("2 would do"), std::string::npos) << e.what();
    EXPECT_EQ(options.workers, 1);
    EXPECT_GT(problem.m, 64);
  }
  return all;
}

world_case<planned_gather> some_gather(numbers& number, pattern how) {
  const all_gather_gemm_problem problem{
      .m = some_rows(number),
      .n = some_columns(number),
      .k = some_columns(number),
      .gather = number(0, 1) == 0 ? gather_axis::rows : gather_axis::k};
  operator_options options = some_options(how, number);
  options.move = number(0, 3) == 0 ? direction::pull : direction::push;
  return case_of<planned_gather>(problem, options, some_place(number));
}
world_case<planned_scatter> some_scatter(numbers& number, pattern how) {
  const gemm_all_scatter_problem problem{some_rows(number), some_columns(number),
                                         some_columns(number)};
  const operator_options options = some_options(how, number);
  return case_of<planned_scatter>(problem, options, some_place(number));
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

template <class Make>
auto all_cases(const Make& make) {
  std::vector<decltype(make(std::declval<numbers&>(), pattern{}))> cases;
  for (const unsigned seed : seeds()) {
    numbers number(seed);
    for (int round = 0; round < rounds; ++round)
      cases.push_back(make(number, own_patterns[static_cast<std::size_t>(round) % 6]));
  }
  return cases;
}

}  // namespace

const std::vector<world_case<planned_gather>>& gather_cases() {
  static const auto all = [] {
    auto cases = all_cases(some_gather);
    each_usual([&](std::int64_t m, std::int64_t n, int world, pattern how) {
      for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
        cases.push_back(case_of<planned_gather>(
            all_gather_gemm_problem{.m = m, .n = n, .k = 8192, .gather = gather}, {.how = how},
            {world, 0, num_sms}));
    });
    return cases;
  }();
  return all;
}
const std::vector<world_case<planned_scatter>>& scatter_cases() {
  static const auto all = [] {
    auto cases = all_cases(some_scatter);
    each_usual([&](std::int64_t m, std::int64_t n, int world, pattern how) {
      cases.push_back(case_of<planned_scatter>(gemm_all_scatter_problem{m, 2 * n, 4096},
                                               {.how = how}, {world, 0, num_sms}));
    });
    return cases;
  }();
  return all;
}

}  // namespace plans_test
