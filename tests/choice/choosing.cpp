// Choices from synthetic tables.
#include "ops/choice/choose.hpp"

#include <fstream>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "ops/choice/prediction.hpp"
#include "sample.hpp"
#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace choice_test {
namespace {

using untax::choice;
using untax::errc;
using untax::predict;
using untax::prediction;
using untax_test::error_of;
using untax_test::expect_error;

choice choose(const tuned_problem& problem, std::string_view device, const tuning_table* own,
              const std::vector<tuning_table>& tables, const std::vector<pattern>& usual = {}) {
  return untax::choose(
      problem,
      {.device = device, .kernels = these_kernels, .own = own, .tables = tables, .usual = usual});
}

double seconds_of(const prediction& predicted, pattern how) {
  for (const auto& time : predicted.times) {
    if (time.how == how) return time.seconds;
  }
  return 0;
}

TEST(predictions, of_a_measured_problem_equal_its_measurement) {
  const tuning_table table = sample_table();
  for (const auto& entry : table.entries) {
    const prediction predicted = predict(table, entry.problem, 4);
    EXPECT_TRUE(predicted.exact);
    ASSERT_EQ(predicted.times.size(), entry.seconds.size());
    for (const auto& [how, seconds] : entry.seconds)
      EXPECT_NEAR(seconds_of(predicted, how), seconds, 1e-9 * seconds) << name_of(how);
    EXPECT_EQ(predicted.from.front(), &entry);
  }
}

/// Seconds of a made-up machine.
double made_up(const tuning_table& table, const tuned_problem& p, pattern how) {
  const untax::device_bounds bounds = table.rates.bounds(p);
  return how == pattern::bulk_library ? 1e-5 + bounds.compute + bounds.link
                                      : 2e-5 + 1.05 * bounds.compute + 0.1 * bounds.link;
}

/// A coarse grid, each time with an error of up to `noise`.
tuning_table made_up_table(std::mt19937& random, double noise) {
  tuning_table table = empty_table();
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  for (const std::int64_t n : {2048, 8192}) {
    for (const std::int64_t k : {2048, 8192}) {
      for (const std::int64_t m : {16, 256, 4096, 16384}) {
        untax::tuning_entry entry{gathered(m, n, k), {}};
        for (const pattern how : {pattern::bulk_library, pattern::fused_specialized})
          entry.seconds[how] = off(random) * made_up(table, entry.problem, how);
        table.entries.push_back(std::move(entry));
      }
    }
  }
  return table;
}

/// Where problems are drawn from.
struct problem_sizes {
  int least_m;
  int most_m;
  int least_side;  // of n and k
  int most_side;
};

/// Predictions for some such problems, also of other numbers of ranks, are off by so much of what
/// they take at most.
void expect_right(const tuning_table& table, const problem_sizes& sizes, std::mt19937& random,
                  double most) {
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto side = [&] { return 8 * between(sizes.least_side / 8, sizes.most_side / 8); };
  for (int i = 0; i < 300; ++i) {
    const tuned_problem p =
        gathered(between(sizes.least_m, sizes.most_m), side(), side(), between(2, 8));
    for (const pattern how : {pattern::bulk_library, pattern::fused_specialized}) {
      const double right = made_up(table, p, how);
      EXPECT_NEAR(seconds_of(predict(table, p, 4), how) / right, 1, most) << shape_text(p);
    }
  }
}

TEST(predictions, are_exact_if_the_machine_follows_the_model) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  constexpr problem_sizes anywhere{1, 30000, 480, 24000};
  constexpr problem_sizes near_grid{8, 32768, 1024, 16384};
  constexpr problem_sizes in_grid{16, 16384, 2048, 8192};
  expect_right(made_up_table(random, 0), anywhere, random, 0.02);
  const tuning_table noisy = made_up_table(random, 0.05);
  expect_right(noisy, in_grid, random, 0.07);
  expect_right(noisy, near_grid, random, 0.15);
}

// Of a pattern that was not measured everywhere, only the lines count where it was.
TEST(predictions, of_a_pattern_use_the_entries_that_have_it) {
  tuning_table few = empty_table();
  for (const std::int64_t m : {16, 64, 256, 1024}) {
    // No model fits these.
    const double seconds = m == 64 ? 3e-5 : 1e-5;
    few.entries.push_back({gathered(m, 4096, 8192),
                           {{pattern::bulk_library, 2e-5}, {pattern::fused_sequential, seconds}}});
  }
  tuning_table more = few;
  more.entries.push_back({gathered(64, 8192, 8192), {{pattern::bulk_library, 3e-5}}});
  const tuned_problem p = gathered(64, 5000, 8192);
  const double alone = seconds_of(predict(few, p, 4), pattern::fused_sequential);
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(seconds_of(predict(more, p, 4), pattern::fused_sequential) / alone, 1, 1e-9);
  EXPECT_EQ(predict(more, p, 4).from.size(), 2U);
}

// The error of a prediction grows with the distance from the grid. Of tables that are drawn anew
// each time, one in 150 would exceed the bound somewhere.
TEST(predictions, are_close_far_from_the_grid_too) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 same(seed);
    expect_right(made_up_table(same, 0.05), {1, 30000, 480, 24000}, same, 0.2);
  }
}

TEST(predictions, follow_entries_that_are_off_the_model) {
  std::mt19937 random(1);
  tuning_table table = made_up_table(random, 0);
  // At one size everything takes twice as long.
  for (auto& entry : table.entries) {
    if (entry.problem != gathered(4096, 8192, 8192)) continue;
    for (auto& [how, seconds] : entry.seconds) seconds *= 2;
  }
  const auto factor = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const tuned_problem p = gathered(m, n, k);
    return seconds_of(predict(table, p, 4), pattern::bulk_library) /
           made_up(table, p, pattern::bulk_library);
  };
  EXPECT_NEAR(factor(4096, 8192, 8192), 2, 1e-6);
  EXPECT_GT(factor(4096, 7168, 7168), 1.7);
  EXPECT_LT(factor(256, 8192, 8192), 1.1);
  EXPECT_LT(factor(4096, 2048, 2048), 1.1);
  EXPECT_GT(factor(2048, 8192, 8192), factor(1024, 8192, 8192)) << "between 256 and 4096";
}

TEST(predictions, leave_out_patterns_that_the_nearest_entries_lack) {
  tuning_table table = sample_table();
  table.entries[1].seconds.erase(pattern::fused_sequential);
  const prediction predicted = predict(table, gathered(2048, 4096, 8192), 4);
  EXPECT_EQ(predicted.times.size(), 2U);
  EXPECT_EQ(seconds_of(predicted, pattern::fused_sequential), 0);
}

/// Of sizes that were measured as such, only their own entries count; of others, those on both
/// sides.
TEST(predictions, weigh_the_sizes_around_a_problem) {
  const auto expected = [](std::int64_t n, std::int64_t k, double of_the_wide, double of_the_deep) {
    tuning_table table = empty_table();
    const auto add = [&](std::int64_t columns, std::int64_t depth, double factor) {
      table.entries.push_back(
          {gathered(1024, columns, depth),
           {{pattern::bulk_library,
             1e-4 * factor * static_cast<double>(columns) * static_cast<double>(depth) / 3e7}}});
    };
    add(4096, 8192, 1);
    add(8192, 8192, of_the_wide);
    add(4096, 16384, of_the_deep);
    return seconds_of(predict(table, gathered(1024, n, k), 4), pattern::bulk_library);
  };
  // Between two: both count.
  EXPECT_GT(expected(5500, 8192, 2, 1), 1.05 * expected(5500, 8192, 1, 1));
  EXPECT_GT(expected(4096, 12000, 1, 2), 1.05 * expected(4096, 12000, 1, 1));
  // At one: no other does.
  EXPECT_DOUBLE_EQ(expected(4096, 8192, 2, 2), expected(4096, 8192, 1, 1));
}

TEST(predictions, ignore_entries_of_other_operators) {
  tuning_table table = empty_table();
  table.entries = {
      {gathered(64, 4096, 8192, 2), {{pattern::bulk_library, 1e-5}}},
      {{"gemm_all_scatter", gather_axis::rows, 8, 64, 4096, 8192}, {{pattern::bulk_library, 1e-5}}},
      {{"all_gather_gemm", gather_axis::k, 7, 64, 4096, 8192}, {{pattern::bulk_library, 1e-5}}}};
  EXPECT_EQ(untax::nearest_ranks(table, gathered(64, 4096, 8192, 8)), 2);
  EXPECT_EQ(untax::nearest_ranks(table, {"gemm_all_scatter", gather_axis::rows, 2, 64, 4096, 8192}),
            8);
  tuning_table ordered = empty_table();
  for (const int ranks : {2, 4, 8}) {
    ordered.entries.push_back({gathered(64, 4096, 8192, ranks), {{pattern::bulk_library, 1e-5}}});
  }
  EXPECT_EQ(untax::nearest_ranks(ordered, gathered(64, 4096, 8192, 4)), 4);
  EXPECT_EQ(untax::nearest_ranks(empty_table(), gathered(64, 4096, 8192, 8)), 0);
}

TEST(choices, the_least_expected_time_comes_first) {
  const choice small = choose(gathered(64, 5000, 8192), "GPU X", nullptr, {sample_table()});
  EXPECT_EQ(small.order, (std::vector{pattern::bulk_library, pattern::fused_specialized,
                                      pattern::fused_sequential}));
  const choice large = choose(gathered(8000, 5000, 8192), "GPU X", nullptr, {sample_table()});
  EXPECT_EQ(large.order, (std::vector{pattern::fused_specialized, pattern::fused_sequential,
                                      pattern::bulk_library}));
  for (const char* said : {"the table of GPU X (2026-11-21, commit 0123abc): expected",
                           "fused_specialized ", " us, bulk_library ", "nearest are 4096 x 4096"})
    EXPECT_NE(large.reason.find(said), std::string::npos) << said << ": " << large.reason;
  const choice exact = choose(gathered(64, 4096, 8192), "GPU X", nullptr, {sample_table()});
  EXPECT_NE(exact.reason.find("measured bulk_library 25.0 us"), std::string::npos) << exact.reason;
}

TEST(choices, the_library_is_a_candidate_even_if_it_was_not_measured) {
  tuning_table table = sample_table();
  table.entries.back().seconds.erase(pattern::bulk_library);
  const choice result = choose({"gemm_all_scatter", gather_axis::rows, 4, 512, 4096, 4096}, "GPU X",
                               nullptr, {table});
  EXPECT_EQ(result.order, (std::vector{pattern::fused_sequential, pattern::bulk_library,
                                       pattern::fused_specialized}));
}

TEST(choices, without_entries_of_the_rank_count_or_device_the_nearest_are_used) {
  const choice ranks = choose(gathered(8000, 5000, 8192, 8), "GPU X", nullptr, {sample_table()});
  EXPECT_EQ(ranks.order.front(), pattern::fused_specialized);
  EXPECT_NE(ranks.reason.find("no measurements with 8 ranks"), std::string::npos) << ranks.reason;
  const choice device = choose(gathered(8000, 5000, 8192), "GPU Y", nullptr, {sample_table()});
  EXPECT_EQ(device.order.front(), pattern::fused_specialized);
  EXPECT_NE(device.reason.find("no measurements on GPU Y"), std::string::npos) << device.reason;
  tuning_table other = sample_table();
  other.device = "GPU Y";
  const choice same = choose(gathered(8000, 5000, 8192), "GPU Y", nullptr, {sample_table(), other});
  EXPECT_NE(same.reason.find("the table of GPU Y (2026-11-21, commit 0123abc): expected"),
            std::string::npos)
      << same.reason;
}

/// A device may have a table for each rank count, measured at different times.
TEST(choices, the_nearest_of_several_tables_of_a_device_is_used) {
  tuning_table of_two = empty_table();
  of_two.commit = "of two";
  of_two.entries = {{gathered(4096, 4096, 8192, 2),
                     {{pattern::bulk_library, 9e-4}, {pattern::fused_sequential, 8e-4}}}};
  for (const auto& tables : {std::vector{of_two, sample_table()}, {sample_table(), of_two}}) {
    for (const auto& [ranks, front] : {std::pair{2, pattern::fused_sequential},
                                       {4, pattern::fused_specialized},
                                       {8, pattern::fused_specialized},
                                       {3, pattern::fused_specialized}}) {
      const choice result = choose(gathered(4096, 4096, 8192, ranks), "GPU X", nullptr, tables);
      EXPECT_EQ(result.order.front(), front) << ranks << " ranks: " << result.reason;
    }
  }
}

TEST(choices, without_any_entries_the_library_is_taken) {
  const tuned_problem by_k{"all_gather_gemm", gather_axis::k, 4, 64, 4096, 8192};
  for (const auto& tables : {std::vector<tuning_table>{}, {sample_table()}}) {
    const choice result = choose(by_k, "GPU X", nullptr, tables);
    EXPECT_EQ(result.order.front(), pattern::bulk_library);
    EXPECT_NE(result.reason.find("no table has anything of all_gather_gemm, k, 4 ranks"),
              std::string::npos)
        << result.reason;
  }
}

TEST(choices, a_table_of_the_user_goes_first) {
  tuning_table own = empty_table();
  own.device = "whatever";
  own.entries = {{gathered(100, 104, 104),
                  {{pattern::fused_sequential, 2e-5}, {pattern::bulk_library, 3e-5}}}};
  const choice result = choose(gathered(64, 4096, 8192), "GPU X", &own, {sample_table()});
  EXPECT_EQ(result.order.front(), pattern::fused_sequential);
  EXPECT_NE(result.reason.find("the table of whatever"), std::string::npos) << result.reason;
  const choice other = choose(gathered(64, 4096, 8192, 2), "GPU Z", &own, {});
  EXPECT_EQ(other.order.front(), pattern::fused_sequential) << "by the nearest rank count";
}

TEST(choices, the_variable_names_the_users_table) {
  const untax_test::temporary_file file;
  std::ofstream(file.path()) << to_json(sample_table());
  const untax::environment env({{"UNTAX_TUNE_TABLE", file.path()}});
  const auto own = untax::own_table(env);
  ASSERT_TRUE(own);
  EXPECT_NE(choose(gathered(64, 4096, 8192), "GPU X", &*own, {}).reason.find("the table of GPU X"),
            std::string::npos);
  std::ofstream(file.path()) << "{}";
  expect_error(error_of([&] { (void)untax::own_table(env); }), errc::invalid_argument,
               {"UNTAX_TUNE_TABLE", file.path(), "\"format\""});
  EXPECT_FALSE(untax::own_table(untax::environment(std::map<std::string, std::string>())));
}

TEST(choices, patterns_expected_near_the_first_are_likely) {
  const auto likely = [](const tuned_problem& p, const char* device) {
    return choose(p, device, nullptr, {sample_table()}).likely;
  };
  const std::vector<pattern> patterns = {pattern::bulk_library, pattern::fused_specialized,
                                         pattern::fused_sequential};
  EXPECT_EQ(likely(gathered(64, 5000, 8192), "GPU X"),
            (std::vector{pattern::bulk_library, pattern::fused_specialized}));
  EXPECT_EQ(likely(gathered(64, 4096, 8192), "GPU X"), std::vector{pattern::bulk_library})
      << "it was measured";
  EXPECT_EQ(likely(gathered(64, 4096, 8192), "GPU Y"), patterns) << "but not there";
  EXPECT_EQ(likely(gathered(64, 4096, 8192, 8), "GPU X"), patterns) << "nor with so many ranks";
  const auto any = likely({"all_gather_gemm", gather_axis::k, 4, 64, 4096, 8192}, "GPU X");
  EXPECT_EQ(any.size(), std::size(untax::all_patterns) - 1) << "every pattern but automatic";
  EXPECT_EQ(any.front(), pattern::bulk_library);
}

/// A table that was measured with other kernels expects, but does not decide.
TEST(choices, with_a_table_of_other_kernels_more_patterns_are_likely) {
  tuning_table old = sample_table();
  const tuned_problem exact = gathered(4096, 4096, 8192);
  const tuned_problem near = gathered(8000, 5000, 8192);
  for (const char* kernels : {"", "fedcba9876543210"}) {
    old.kernels = kernels;
    const choice result = choose(exact, "GPU X", nullptr, {old}, {pattern::copy_engine});
    EXPECT_NE(result.reason.find("commit 0123abc), which is of other kernels: measured"),
              std::string::npos)
        << result.reason;
    EXPECT_EQ(result.likely, (std::vector{pattern::fused_specialized, pattern::fused_sequential,
                                          pattern::bulk_library, pattern::copy_engine}));
    const choice other = choose(near, "GPU X", nullptr, {old});
    EXPECT_EQ(other.likely.back(), pattern::bulk_library) << "however slow it was";
  }
  const choice now = choose(exact, "GPU X", nullptr, {sample_table()}, {pattern::copy_engine});
  EXPECT_EQ(now.reason.find("other kernels"), std::string::npos) << now.reason;
  EXPECT_EQ(now.likely, (std::vector{pattern::fused_specialized, pattern::copy_engine}))
      << "the table has no times of the second";
  EXPECT_EQ(choose(exact, "GPU X", nullptr, {sample_table()}, {pattern::fused_sequential}).likely,
            std::vector{pattern::fused_specialized});
  old.commit = "old";
  for (const auto& tables : {std::vector{old, sample_table()}, {sample_table(), old}})
    EXPECT_NE(choose(exact, "GPU X", nullptr, tables).reason.find("0123abc"), std::string::npos);
}

TEST(choices, without_entries_the_usual_patterns_and_the_library_are_likely) {
  const std::vector<pattern> usual = {pattern::fused_warp_specialized, pattern::fused_sequential};
  const tuned_problem p{.operator_name = "gemm_reduce_scatter", .m = 512, .n = 4096, .k = 8192};
  const choice result = choose(p, "GPU X", nullptr, {sample_table()}, usual);
  EXPECT_EQ(result.likely, (std::vector{pattern::fused_warp_specialized, pattern::fused_sequential,
                                        pattern::bulk_library}));
  EXPECT_EQ(result.order.front(), pattern::fused_warp_specialized) << "where nothing is timed";
  EXPECT_TRUE(result.times.empty());
}

TEST(choices, sums_use_entries_with_their_type_of_partial_results) {
  tuning_table table = empty_table();
  tuned_problem p{.operator_name = "gemm_all_reduce", .ranks = 4, .m = 64, .n = 4096, .k = 8192};
  table.entries = {{p, {{pattern::fused_sequential, 1e-5}, {pattern::bulk_library, 2e-5}}}};
  p.partials = untax::dtype::f32;
  EXPECT_EQ(untax::nearest_ranks(table, p), 0);
  table.entries.push_back({p, {{pattern::fused_sequential, 2e-5}, {pattern::bulk_library, 1e-5}}});
  EXPECT_EQ(choose(p, "GPU X", nullptr, {table}).order.front(), pattern::bulk_library);
  p.partials = untax::dtype::bf16;
  EXPECT_EQ(choose(p, "GPU X", nullptr, {table}).order.front(), pattern::fused_sequential);
}

}  // namespace
}  // namespace choice_test
