#include "tests/plans/cases.hpp"

#include <untax/core/error.hpp>

#include "tests/errors.hpp"

namespace plans_test {
namespace {

using namespace untax;

constexpr int rounds = 48;
/// Those of whole GPUs, and of parts of one that ranks share.
constexpr int sm_counts[] = {132, 132, 114, 66, 32};

/// Random options, mostly the defaults.
operator_options some_options(pattern how, numbers& number) {
  operator_options options;
  options.how = how;
  const auto some = [&] { return number.count(1, number(0, 1) == 0 ? 4 : 2 * num_sms); };
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

/// Adds what a world plans: all plans of rank `chooser`. It is refused only if it may take one
/// block, and there are clusters of two.
template <class Problem>
void add_world(std::vector<planned<Problem>>& cases, asked<Problem> what, int chooser = 0) {
  try {
    for (what.rank = 0; what.rank < what.world; ++what.rank) {
      const auto plans = what.plans();
      const std::size_t count = what.rank == chooser ? plans.size() : 1;
      for (std::size_t i = 0; i < count; ++i)
        cases.push_back({what, plans[i], {what.problem, plans[i].protocol}, i});
    }
  } catch (const error& e) {
    untax_test::expect_error(e, errc::unsupported, {"2 would do"});
    EXPECT_EQ(what.options.workers, 1);
    EXPECT_GT(what.problem.m, 64);
  }
}

template <class Problem>
void add_some(std::vector<planned<Problem>>& cases, numbers& number, pattern how) {
  asked<Problem> what;
  what.problem.m = some_rows(number);
  what.problem.n = some_columns(number);
  what.problem.k = some_columns(number);
  if constexpr (gathers<Problem>)
    what.problem.gather = number(0, 1) == 0 ? gather_axis::rows : gather_axis::k;
  what.options = some_options(how, number);
  if (gathers<Problem> && number(0, 3) == 0) what.options.move = direction::pull;
  what.world = number.count(1, 8);
  const int chooser = number.count(0, what.world - 1);
  what.sms = number.one_of(sm_counts);
  add_world(cases, what, chooser);
}

/// Random ones; then sizes of models, on whole GPUs, as they are planned where nothing is asked
/// for: `add_usual(all, m, n, world, how)`.
template <class Problem, class AddUsual>
std::vector<planned<Problem>> all_cases(const AddUsual& add_usual) {
  std::vector<planned<Problem>> all;
  for (const unsigned seed : seeds()) {
    numbers random(seed);
    for (int round = 0; round < rounds; ++round) add_some(all, random, own_patterns[round % 6]);
  }
  int number = 0;
  for (const std::int64_t m : {16, 128, 512, 1024, 4096}) {
    for (const pattern how : own_patterns) {
      ++number;
      add_usual(all, m, number % 2 == 0 ? 3584 : 7168, number % 3 == 0 ? 4 : 2, how);
    }
  }
  return all;
}

}  // namespace

const std::vector<planned_gather>& gather_cases() {
  static const auto known = all_cases<all_gather_gemm_problem>(
      [](auto& cases, std::int64_t m, std::int64_t n, int world, pattern how) {
        for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
          add_world(cases, asked_gather{
                               {.m = m, .n = n, .k = 8192, .gather = gather}, world, {.how = how}});
      });
  return known;
}
const std::vector<planned_scatter>& scatter_cases() {
  static const auto known = all_cases<gemm_all_scatter_problem>(
      [](auto& cases, std::int64_t m, std::int64_t n, int world, pattern how) {
        add_world(cases, asked_scatter{{m, 2 * n, 4096}, world, {.how = how}});
      });
  return known;
}

}  // namespace plans_test
