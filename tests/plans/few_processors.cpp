// What is planned where a rank has few multiprocessors, or may use few blocks: something that fits,
// or a refusal whose reason and advice are true.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "tests/errors.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::own_patterns;

constexpr int most_num_sms = 14;

/// The number that a refusal says would do.
int advice_of(const std::string& text) {
  const std::size_t end = text.find(" would do");
  if (end == std::string::npos) return 0;
  return std::stoi(text.substr(text.rfind(' ', end - 1) + 1, end));
}

/// `plan(workers, SMs)` plans, or throws.
template <class Plan>
void expect_true_refusal(const error& e, int workers, int num_sms, const Plan& plan) {
  const std::string text = e.what();
  ASSERT_EQ(e.code(), errc::unsupported) << text;
  const bool blames_workers = text.find("option workers") != std::string::npos;
  const int advice = advice_of(text);
  ASSERT_EQ(blames_workers, text.find("multiprocessors") == std::string::npos) << text;
  const std::string had = blames_workers ? fmt::format("(option workers is {})", workers)
                                         : fmt::format("the {} multiprocessors", num_sms);
  ASSERT_NE(text.find(had), std::string::npos) << text;
  if (blames_workers) {
    ASSERT_GT(workers, 0) << "nobody asked for so few: " << text;
    ASSERT_GT(advice, workers) << text;
    EXPECT_NO_THROW(plan(advice, num_sms)) << text;
    EXPECT_THROW(plan(advice - 1, num_sms), error) << text;
  } else {
    ASSERT_GT(advice, num_sms) << text;
    EXPECT_NO_THROW(plan(0, advice)) << text;
    EXPECT_THROW(plan(0, advice - 1), error) << text;
  }
}

/// `plans(options, SMs)` plans.
template <class Plans>
void try_all(const std::string& name, const Plans& plans, int& refused, int& planned) {
  for (const pattern how : own_patterns) {
    for (const int workers : {0, 1, 2, 5}) {
      for (const int senders : {0, 1, 3, 40}) {
        for (int num_sms = 1; num_sms <= most_num_sms; ++num_sms) {
          SCOPED_TRACE(fmt::format("{}, {}, {} workers, {} senders, {} SMs", name, name_of(how),
                                   workers, senders, num_sms));
          const auto plan = [&](int with, int of) {
            operator_options options;
            options.how = how;
            options.workers = with;
            options.senders = senders;
            return plans(options, of);
          };
          try {
            for (const auto& p : plan(workers, num_sms))
              plans_test::expect_fits(p, how, workers, num_sms);
            ++planned;
          } catch (const error& e) {
            expect_true_refusal(e, workers, num_sms, plan);
            ++refused;
          }
        }
      }
    }
  }
}

TEST(few_num_sms, two_beside_those_that_move_are_enough) {
  for (const pattern how : {pattern::producer_consumer, pattern::fused_specialized}) {
    operator_options options;
    options.how = how;
    EXPECT_FALSE(gather_plans({.m = 64, .n = 2048, .k = 1024}, 2, 0, options, 4).empty())
        << name_of(how);
  }
}

TEST(few_num_sms, fit_or_are_refused_for_a_true_reason) {
  int refused = 0;
  int planned = 0;
  for (const std::int64_t m : {16, 64, 600, 20'000}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      const auto gathers = [&](const operator_options& options, int num_sms) {
        return gather_plans({.m = m, .n = 2048, .k = 1024, .gather = gather}, 2, 0, options,
                            num_sms);
      };
      try_all(fmt::format("all_gather_gemm of {} rows, by {}", m, name_of(gather)), gathers,
              refused, planned);
    }
    const auto scatters = [&](const operator_options& options, int num_sms) {
      return scatter_plans({m, 2048, 1024}, 2, 0, options, num_sms);
    };
    try_all(fmt::format("gemm_all_scatter of {} rows", m), scatters, refused, planned);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(planned, 1000);
}

}  // namespace
