// The rows of a model that was measured with all of its layers and with the first alone.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/taxes_chain_rows.hpp"

namespace untax::cli::test {
namespace {

constexpr int layers = 5;

/// `runs` runs around these medians, `noise` apart.
chain_seconds around(double model, double single, double noise, int runs = 21) {
  chain_seconds seconds;
  for (int i = 0; i < runs; ++i) {
    const double off = noise * (i - runs / 2);
    seconds.model.push_back(model + off);
    seconds.single.push_back(single - off);
  }
  return seconds;
}

layer_operation operation(int count = layers) {
  layer_operation op;
  op.m = 3;
  op.n = 64;
  op.layers = count;
  op.type = dtype::f32;
  return op;
}

chain_times times_of(double noise) {
  chain_times times;
  // A layer takes 20, 10, 9 and 8, and the rest 5, 4, 4 and 3.
  times.ways = {around(105, 25, noise), around(54, 14, noise), around(49, 13, noise),
                around(43, 11, noise)};
  times.alone = around(37, 9, noise);
  return times;
}

tax_report report_of(std::vector<tax_row> rows) {
  tax_report report;
  report.layers = layers;
  report.tensor_parallel = 2;
  report.tokens = 3;
  report.repeats = 21;
  report.rows = std::move(rows);
  return report;
}

TEST(chain_rows, layers_and_the_rest_sum_to_the_model) {
  const std::vector<tax_row> rows = chain_rows(times_of(0.01), operation());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].op.occurrences(), layers);
  EXPECT_EQ(rows[1].op.occurrences(), 1);
  const double layer[] = {20, 10, 9, 8};
  const double rest[] = {5, 4, 4, 3};
  for (std::size_t i = 0; i < chain_ways.size(); ++i) {
    EXPECT_EQ(rows[0].steps[i].id, chain_ways[i].step);
    EXPECT_NEAR(rows[0].steps[i].time.median, layer[i], 1e-9);
    EXPECT_NEAR(rows[1].steps[i].time.median, rest[i], 1e-9);
  }
  EXPECT_NEAR(rows[0].compute.median, 7, 1e-9);
  EXPECT_NEAR(rows[1].compute.median, 2, 1e-9);
  // Model and first layer spread by 0.01 * 20 * 0.8 each, here in opposite directions.
  const spread& time = rows[0].steps[0].time;
  EXPECT_NEAR(time.p90 - time.p10, 2 * 0.16 / (layers - 1), 1e-9);

  const tax_report report = report_of(rows);
  check(report);
  const tax_breakdown whole = model_total(report);
  EXPECT_NEAR(whole.total(), 105, 1e-9);
  EXPECT_NEAR(whole.launch, 105 - 54, 1e-9);
  EXPECT_NEAR(whole.engine, 54 - 49, 1e-9);
  EXPECT_NEAR(whole.joint, 49 - 43, 1e-9);
  EXPECT_NEAR(whole.remainder, 43 - 37, 1e-9);
  EXPECT_NEAR(whole.bound, 37, 1e-9);
  EXPECT_NE(rows[0].why_not_separable(report).find("E3 was not measured"), std::string::npos);
}

TEST(chain_rows, times_within_noise_are_one_row_for_the_model) {
  for (const auto& [noise, count] : {std::pair{4.2, layers}, std::pair{0.01, 1}}) {
    const std::vector<tax_row> rows = chain_rows(times_of(noise), operation(count));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].op.name, "model");
    EXPECT_EQ(rows[0].op.occurrences(), 1);
    EXPECT_NEAR(rows[0].steps[0].time.median, 105, 1e-9);
    EXPECT_NEAR(rows[0].compute.median, 37, 1e-9);
    check(report_of(rows));
  }
}

TEST(chain_rows, no_time_is_below_zero_and_spreads_keep_their_width) {
  const std::vector<tax_row> rows = chain_rows(times_of(1), operation());
  ASSERT_EQ(rows.size(), 2U);
  check(report_of(rows));
  const spread& rest = rows[1].steps[3].time;
  EXPECT_EQ(rest.p10, 0);
  // What is left of the first layer alone: 16 * (1 + 2 / 4) wide.
  EXPECT_NEAR(rest.p90, 24, 1e-9);
}

}  // namespace
}  // namespace untax::cli::test
