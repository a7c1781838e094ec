// A verdict follows from figures and their uncertainty; all figures here are invented.
#include <untax/taxes/verdict.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample.hpp"

namespace untax::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string key_of(const tax_part* part) {
  return part != nullptr ? std::string(part->key) : std::string("none");
}

tax_breakdown all(double value) { return {value, value, value, value, value, value}; }

TEST(judge, clear_figures) {
  const tax_verdict v = judge({1, 0, 3, 2, 1, 3}, all(0.1));
  EXPECT_EQ(v.fusing, gain::faster);
  EXPECT_DOUBLE_EQ(v.speedup, 2.25) << "of E1";
  EXPECT_DOUBLE_EQ(v.speedup_eager, 2.5);
  EXPECT_EQ(key_of(v.largest), "bulk_synchronous");
  EXPECT_EQ(key_of(v.rival), "none");
  EXPECT_EQ(v.bound, bound_state::holds);
  EXPECT_DOUBLE_EQ(v.over_bound, 4.0 / 3);
}

TEST(judge, the_largest_tax_has_no_ratio_to_a_tax_of_unknown_size) {
  // A locality tax of 5 % above a launch tax of 89 +- 4726 %.
  const tax_verdict v = judge({89, 0, 0, 5, 1, 5}, {4726, 0, 1, 0.5, 0.1, 0.1});
  EXPECT_EQ(v.fusing, gain::none);
  EXPECT_EQ(key_of(v.largest), "none") << "no tax beside no difference";
  EXPECT_TRUE(v.tells_taxes);
  EXPECT_EQ(v.speedup, 0) << "no ratio beside no difference";
  EXPECT_FALSE(contains(gain_text(v), "times as fast"));
}

TEST(judge, a_tax_within_its_uncertainty_is_not_the_largest) {
  EXPECT_EQ(judge({5, 0, 1, 1, 1, 5}, {5, 0, 1, 1, 0, 0}).largest, nullptr);
  EXPECT_EQ(judge({-5, 0, -1, -1, 1, 9}, all(0)).largest, nullptr) << "negative taxes are none";
  EXPECT_EQ(judge(all(0), all(0)).largest, nullptr);
}

TEST(judge, two_taxes_of_one_size_are_rivals) {
  const tax_verdict v = judge({2, 0, 2, 0, 1, 1}, all(0.1));
  EXPECT_NE(v.largest, nullptr);
  EXPECT_NE(v.rival, nullptr);
  EXPECT_NE(v.largest, v.rival);
}

TEST(judge, a_loss_is_reported) {
  const tax_verdict v = judge({-1, 0, 0, -3, 1, 5}, all(0.1));
  EXPECT_EQ(v.fusing, gain::slower);
  EXPECT_LT(v.speedup, 1);
  EXPECT_EQ(gain_text(v), "fusing loses here");
}

TEST(judge, a_bound_that_is_beaten_is_invalid) {
  const auto state = [](double remainder, double doubt) {
    return judge({0, 0, 0, 0, remainder, 5}, all(doubt)).bound;
  };
  EXPECT_EQ(state(1, 0.1), bound_state::holds);
  EXPECT_EQ(state(0, 0), bound_state::holds);
  EXPECT_EQ(state(-0.1, 0.2), bound_state::reached);
  EXPECT_EQ(state(-0.3, 0.2), bound_state::invalid);
  EXPECT_EQ(state(-0.3, infinite), bound_state::unknown);
  EXPECT_EQ(state(0.3, infinite), bound_state::holds);
  const tax_verdict invalid = judge({0, 0, 0, 0, -1, 5}, all(0.2));
  EXPECT_EQ(invalid.over_bound, 0);
  EXPECT_EQ(over_bound_text(invalid), "invalid");
  EXPECT_EQ(over_bound_text(judge({0, 0, 0, 0, -0.1, 5}, all(0.2))), "~0.98");
  EXPECT_EQ(over_bound_text(judge({0, 0, 0, 0, 1, 4}, all(0.2))), "1.25");
}

// Only a valid bound allows the claim that nothing is faster.
TEST(judge, an_optimum_is_claimed_only_with_a_valid_bound) {
  for (const double remainder : {-1.0, -0.1, 0.0, 1.0}) {
    for (const double doubt : {0.0, 0.2, infinite}) {
      const tax_verdict v = judge({0, 0, 0, 0, remainder, 5}, all(doubt));
      EXPECT_EQ(contains(bound_text(v), "faster than the bound"), v.bound == bound_state::holds)
          << remainder << " +- " << doubt;
    }
  }
}

TEST(judge, one_run_gives_no_certainty) {
  const tax_verdict v = judge({5, 0, 3, 2, -1, 5}, all(infinite));
  EXPECT_EQ(v.fusing, gain::unknown);
  EXPECT_EQ(v.largest, nullptr);
  EXPECT_EQ(v.bound, bound_state::unknown);
  EXPECT_EQ(v.speedup, 0);
}

TEST(judge, nan_claims_nothing) {
  for (const auto& part : tax_parts) {
    tax_breakdown parts = {1, 0, 3, 2, 1, 3};
    parts.*part.value = nan;
    EXPECT_NE(judge(parts, all(0.1)).fusing, gain::faster) << part.key;
    EXPECT_FALSE(contains(gain_text(judge(parts, all(0.1))), "nan")) << part.key;
    EXPECT_FALSE(contains(over_bound_text(judge(parts, all(0.1))), "nan")) << part.key;
  }
  const tax_verdict v = judge({1, 0, 3, 2, 1, 3}, all(nan));
  EXPECT_EQ(v.fusing, gain::unknown);
  EXPECT_EQ(v.largest, nullptr);
  EXPECT_EQ(judge({1, 0, 3, 2, 1, 0}, all(0)).bound, bound_state::absent);
  EXPECT_EQ(judge({1, 0, 3, 2, 1, -3}, all(0)).bound, bound_state::absent);
  EXPECT_TRUE(is_doubtful(nan, 0));
  EXPECT_TRUE(is_doubtful(1, infinite));
  EXPECT_FALSE(is_doubtful(0, 0));
}

// The same in all three ways to show a report.
void expect_everywhere(const tax_report& report, const std::string& part, bool present) {
  EXPECT_EQ(contains(render_table(report, 4000), part), present) << render_table(report, 4000);
  EXPECT_EQ(contains(render_html(report), part), present) << "html: " << part;
  EXPECT_EQ(contains(to_json(report), part), present) << "json: " << part;
}

tax_report beaten_report() {
  tax_report report = sample_report();
  report.rows[0].steps[4].time = {3, 2.9, 3.1};  // its bound is 4
  return report;
}

TEST(report_verdict, of_a_bound_that_is_beaten) {
  const tax_report report = beaten_report();
  EXPECT_EQ(verdict_of(report.rows[0], report).bound, bound_state::invalid);
  EXPECT_EQ(verdict_of(report.rows[1], report).bound, bound_state::holds);
  EXPECT_EQ(verdict_of(report).bound, bound_state::invalid);
  EXPECT_EQ(invalid_bounds(report), "qkv");
  expect_everywhere(report, "is invalid: in qkv E4 is below it", true);
  expect_everywhere(report, "can be faster", false);
  expect_everywhere(report, "nothing can beat", false);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["verdict"]["bound"], "invalid");
  EXPECT_EQ(json["rows"][0]["verdict"]["bound"], "invalid");
  EXPECT_EQ(json["rows"][1]["verdict"]["bound"], "holds");
  EXPECT_EQ(json["verdict"]["largest_tax"], "locality");
}

TEST(report_verdict, of_one_run) {
  tax_report report = sample_report();
  report.repeats = 1;
  for (const char* claim : {"times as fast", "The largest tax is", "no difference"})
    expect_everywhere(report, claim, false);
  expect_everywhere(report, "The effect of chance on a single run is unknown", true);
  EXPECT_FALSE(contains(render_html(report), "inf"));
  EXPECT_FALSE(contains(render_table(report), "inf"));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["average_layer_uncertainty"]["launch"].is_null());
  EXPECT_TRUE(json["verdict"]["largest_tax"].is_null());
  EXPECT_EQ(from_json(to_json(report)), report);
}

TEST(report_verdict, of_no_difference_has_no_ratio) {
  tax_report report = sample_report();
  for (tax_row& row : report.rows) row.steps[0].time = {90, 1, 4000};
  expect_everywhere(report, "no difference that this measurement can tell", true);
  expect_everywhere(report, "times as fast", false);
  expect_everywhere(report, "no tax is named", true);
  EXPECT_FALSE(contains(finding(report), "%")) << finding(report);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["verdict"]["largest_tax"].is_null());
  EXPECT_FALSE(json["verdict"].contains("may_be_largest"));
}

TEST(report_verdict, of_one_operator_has_no_layer) {
  tax_report report = sample_report();
  report.rows.pop_back();
  report.rows[0].op.layers = report.layers = 1;
  report.one_operator = true;
  report.model = "all_gather_gemm";
  for (const char* word : {"average layer", "verage layer", "whole model", "average_layer"})
    expect_everywhere(report, word, false);
  expect_everywhere(report, "all_gather_gemm takes 9.00 s", true);
  EXPECT_EQ(from_json(to_json(report)), report);
}

TEST(report_verdict, of_one_rank) {
  tax_report report = sample_report();
  report.tensor_parallel = 1;
  for (tax_row& row : report.rows)
    std::erase_if(row.steps, [](const tax_step& step) { return step.id == "E3"; });
  EXPECT_EQ(layer_total(report).bulk_synchronous, 0);
  expect_everywhere(report, "it has no bulk-synchronous tax", true);
  expect_everywhere(report, "The largest tax is the bulk-synchronous", false);
}

TEST(report_verdict, warnings_are_shown) {
  tax_report report = sample_report();
  report.warnings = {"the machine was busy"};
  expect_everywhere(report, "the machine was busy", true);
  EXPECT_EQ(from_json(to_json(report)), report);
}

TEST(uncertainty, of_few_runs_is_larger) {
  tax_report report = sample_report();
  const tax_row row = report.rows[0];
  double last = infinite;
  for (const int repeats : {1, 2, 3, 4, 10, 100}) {
    report.repeats = repeats;
    const double doubt = row.uncertainty(report).launch;
    if (repeats == 1) {
      EXPECT_EQ(doubt, infinite);
    } else {
      EXPECT_LT(doubt, last) << repeats;
    }
    last = doubt;
  }
}

}  // namespace
}  // namespace untax::test
