// What is chosen from synthetic tables.
#include "ops/choice/choose.hpp"

#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/choice/prediction.hpp"
#include "sample.hpp"
#include "tests/errors.hpp"

namespace choice_test {
namespace {

using untax::choice;
using untax::choose;
using untax::errc;
using untax::predict;
using untax::prediction;
using untax_test::error_of;
using untax_test::expect_error;

double seconds_of(const prediction& found, pattern how) {
  for (const auto& one : found.times) {
    if (one.how == how) return one.seconds;
  }
  return 0;
}

TEST(predictions, a_problem_that_was_measured_takes_what_it_took) {
  const tuning_table table = sample_table();
  for (const auto& entry : table.entries) {
    const prediction found = predict(table, entry.problem, 4);
    EXPECT_TRUE(found.exact);
    ASSERT_EQ(found.times.size(), entry.seconds.size());
    for (const auto& [how, seconds] : entry.seconds)
      EXPECT_NEAR(seconds_of(found, how), seconds, 1e-9 * seconds) << name_of(how);
    EXPECT_EQ(found.from.front(), &entry);
  }
}

TEST(predictions, along_a_line_factors_over_the_bound_are_between_those_of_its_ends) {
  tuning_table table = empty_table();
  table.entries = {entry_of(table, gathered(256, 4096, 8192), {{pattern::bulk_library, 2}}),
                   entry_of(table, gathered(4096, 4096, 8192), {{pattern::bulk_library, 1.125}})};
  const tuned_problem middle = gathered(1024, 4096, 8192);
  EXPECT_NEAR(predict(table, middle, 4).times[0].seconds, 1.5 * table.rates.bound(middle), 1e-9);
  const tuned_problem below = gathered(16, 4096, 8192);
  EXPECT_NEAR(predict(table, below, 4).times[0].seconds, 2 * table.rates.bound(below), 1e-9);
  const tuned_problem above = gathered(65536, 4096, 8192);
  EXPECT_NEAR(predict(table, above, 4).times[0].seconds, 1.125 * table.rates.bound(above), 1e-9);
}

TEST(predictions, between_lines_the_nearer_one_counts_more) {
  tuning_table table = empty_table();
  table.entries = {entry_of(table, gathered(1024, 2048, 8192), {{pattern::bulk_library, 1}}),
                   entry_of(table, gathered(1024, 8192, 8192), {{pattern::bulk_library, 4}})};
  const auto factor = [&](std::int64_t n) {
    const tuned_problem p = gathered(1024, n, 8192);
    return predict(table, p, 4).times[0].seconds / table.rates.bound(p);
  };
  EXPECT_NEAR(factor(4096), 2, 1e-6) << "in the middle";
  EXPECT_LT(factor(2560), 1.2);
  EXPECT_GT(factor(7168), 3.6);
  EXPECT_LT(factor(2048), 1.0001);
}

// Whatever the sizes, times over the bound stay within what was measured.
TEST(predictions, stay_within_what_was_measured) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  tuning_table table = empty_table();
  for (int i = 0; i < 60; ++i) {
    const tuned_problem p = gathered(1 << between(0, 14), 8 << between(0, 10), 8 << between(0, 10));
    const bool known =
        std::ranges::any_of(table.entries, [&](const auto& one) { return one.problem == p; });
    if (known) continue;
    table.entries.push_back(entry_of(table, p, {{pattern::bulk_library, between(10, 30) / 10.0}}));
  }
  for (int i = 0; i < 500; ++i) {
    const tuned_problem p = gathered(between(1, 30000), 8 * between(1, 4000), 8 * between(1, 4000));
    const double factor = predict(table, p, 4).times.at(0).seconds / table.rates.bound(p);
    EXPECT_GE(factor, 0.999);
    EXPECT_LE(factor, 3.001);
  }
}

TEST(predictions, leave_out_what_the_nearest_entries_do_not_have) {
  tuning_table table = sample_table();
  table.entries[1].seconds.erase(pattern::fused_sequential);
  const prediction found = predict(table, gathered(2048, 4096, 8192), 4);
  EXPECT_EQ(found.times.size(), 2U);
  EXPECT_EQ(seconds_of(found, pattern::fused_sequential), 0);
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
  const choice made = choose({"gemm_all_scatter", gather_axis::rows, 4, 512, 4096, 4096}, "GPU X",
                             nullptr, {table});
  EXPECT_EQ(made.order, (std::vector{pattern::fused_sequential, pattern::bulk_library,
                                     pattern::fused_specialized}));
}

TEST(choices, without_entries_of_so_many_ranks_or_of_the_device_the_nearest_serve) {
  const choice ranks = choose(gathered(8000, 5000, 8192, 8), "GPU X", nullptr, {sample_table()});
  EXPECT_EQ(ranks.order.front(), pattern::fused_specialized);
  EXPECT_NE(ranks.reason.find("nothing was measured with 8 ranks"), std::string::npos)
      << ranks.reason;
  const choice device = choose(gathered(8000, 5000, 8192), "GPU Y", nullptr, {sample_table()});
  EXPECT_EQ(device.order.front(), pattern::fused_specialized);
  EXPECT_NE(device.reason.find("nothing was measured on GPU Y"), std::string::npos)
      << device.reason;
  tuning_table other = sample_table();
  other.device = "GPU Y";
  const choice same = choose(gathered(8000, 5000, 8192), "GPU Y", nullptr, {sample_table(), other});
  EXPECT_NE(same.reason.find("the table of GPU Y (2026-11-21, commit 0123abc): expected"),
            std::string::npos)
      << same.reason;
}

TEST(choices, without_any_entries_the_library_is_taken) {
  const tuned_problem by_k{"all_gather_gemm", gather_axis::k, 4, 64, 4096, 8192};
  for (const auto& tables : {std::vector<tuning_table>{}, {sample_table()}}) {
    const choice made = choose(by_k, "GPU X", nullptr, tables);
    EXPECT_EQ(made.order.front(), pattern::bulk_library);
    EXPECT_NE(made.reason.find("no table has anything of all_gather_gemm, k, 4 ranks"),
              std::string::npos)
        << made.reason;
  }
}

TEST(choices, a_table_of_the_user_goes_first) {
  tuning_table own = empty_table();
  own.device = "whatever";
  own.entries = {entry_of(own, gathered(100, 100, 100),
                          {{pattern::fused_sequential, 2}, {pattern::bulk_library, 3}})};
  const choice made = choose(gathered(64, 4096, 8192), "GPU X", &own, {sample_table()});
  EXPECT_EQ(made.order.front(), pattern::fused_sequential);
  EXPECT_NE(made.reason.find("the table of whatever"), std::string::npos) << made.reason;
  const choice other = choose(gathered(64, 4096, 8192, 2), "GPU Z", &own, {});
  EXPECT_EQ(other.order.front(), pattern::fused_sequential) << "by the nearest rank count";
}

TEST(choices, the_variable_names_the_users_table) {
  const auto path = std::filesystem::temp_directory_path() / "untax_choosing_test.json";
  std::ofstream(path) << to_json(sample_table());
  const untax::environment env({{"UNTAX_TUNE_TABLE", path.string()}});
  EXPECT_NE(choose(gathered(64, 4096, 8192), "GPU X", env).reason.find("the table of GPU X"),
            std::string::npos);
  std::ofstream(path) << "{}";
  expect_error(error_of([&] { (void)choose(gathered(64, 64, 64), "GPU X", env); }),
               errc::invalid_argument, {"UNTAX_TUNE_TABLE", path.string(), "\"format\""});
  std::filesystem::remove(path);
}

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

TEST(choices, what_is_refused_is_passed_over) {
  untax::run_threads(2, [](untax::world& w) {
    const auto made = untax::make_chosen(w, gathered(64, 4096, 8192, 2), "GPU X", [](pattern how) {
      if (how != pattern::fused_specialized)
        throw untax::error(errc::unsupported, fmt::format("no {} here", name_of(how)));
      return std::make_unique<stub>(how);
    });
    EXPECT_EQ(made->how(), pattern::fused_specialized);
    EXPECT_NE(made->text().find("is not possible: no bulk_library here"), std::string::npos)
        << made->text();
  });
  const auto refused = [](pattern) -> std::unique_ptr<untax::device_operator> {
    throw untax::error(errc::unsupported, "none of them");
  };
  const auto all_refused = [&] {
    untax::run_threads(1, [&](untax::world& w) {
      (void)untax::make_chosen(w, gathered(64, 4096, 8192, 1), "GPU X", refused);
    });
  };
  expect_error(error_of(all_refused), errc::unsupported, {"none of them"});
}

}  // namespace
}  // namespace choice_test
