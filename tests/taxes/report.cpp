#include <untax/taxes/report.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample.hpp"

namespace untax::test {
namespace {

tax_report random_report(std::mt19937& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  tax_report report = sample_report();
  report.model = "m \"<&>\\ \u00e9 \n" + std::to_string(random());
  report.layers = static_cast<int>(random() % 100 + 1);
  report.repeats = static_cast<int>(random() % 50 + 1);
  report.type = random() % 2 == 0 ? dtype::f32 : dtype::f16;
  if (random() % 2 == 0) {
    report.gpus = "4 x NVIDIA H200";
    report.driver = "580";
    report.libraries = "cuBLASLt";
    report.unmeasured.push_back({report.rows[1].op, "there is no kernel"});
  }
  const double scale = std::pow(10, between(-8, 2));
  for (std::size_t extra = random() % 4; extra > 0; --extra) report.rows.push_back(report.rows[0]);
  for (tax_row& row : report.rows) {
    row.op.layers = static_cast<int>(random() % static_cast<unsigned>(report.layers) + 1);
    for (spread* alone : {&row.compute, &row.link}) {
      const double median = between(0, scale);
      *alone = {median, median * between(0.5, 1), median * between(1, 2)};
    }
    if (row.op.operator_name == "all_gather_gemm" && random() % 3 == 0)
      row.op.gather = gather_axis::k;
    if (random() % 3 == 0) {
      row.op.operator_name = "flash_decode";
      row.op.gather = gather_axis::rows;
      row.op.attention = {32, 8, 128};
    }
    for (tax_step& step : row.steps) {
      const double median = between(0.1, 1) * scale;
      step.time = {median, median * between(0.5, 1), median * between(1, 2)};
    }
    for (const char* gone : {"E1", "E2", "E3"}) {
      if (random() % 4 != 0) continue;
      std::erase_if(row.steps, [&](const tax_step& step) { return step.id == gone; });
    }
  }
  return report;
}

TEST(breakdown, by_hand) {
  const tax_breakdown qkv = sample_report().rows[0].breakdown(sample_report());
  EXPECT_DOUBLE_EQ(qkv.launch, 1);
  EXPECT_DOUBLE_EQ(qkv.engine, 1);
  EXPECT_DOUBLE_EQ(qkv.bulk_synchronous, 2);
  EXPECT_DOUBLE_EQ(qkv.locality, 1);
  EXPECT_DOUBLE_EQ(qkv.remainder, 1);
  EXPECT_DOUBLE_EQ(qkv.bound, 4);
  const tax_breakdown down = sample_report().rows[1].breakdown(sample_report());
  EXPECT_DOUBLE_EQ(down.launch, 0);
  EXPECT_DOUBLE_EQ(down.engine, 0);
  EXPECT_DOUBLE_EQ(down.stand_in, -1) << "E2 took longer than E1";
  EXPECT_DOUBLE_EQ(down.remainder, 3);
  EXPECT_DOUBLE_EQ(down.bound, 12) << "the link is slower than the arithmetic";
}

TEST(breakdown, totals_by_hand) {
  const tax_breakdown model = model_total(sample_report());
  EXPECT_DOUBLE_EQ(model.launch, 10 * 1 + 4 * 0);
  EXPECT_DOUBLE_EQ(model.engine, 10 * 1);
  EXPECT_DOUBLE_EQ(model.stand_in, -4 * 1);
  EXPECT_DOUBLE_EQ(model.bulk_synchronous, 10 * 2 + 4 * 3);
  EXPECT_DOUBLE_EQ(model.bound, 10 * 4 + 4 * 12);
  EXPECT_DOUBLE_EQ(model.total(), 10 * 10 + 4 * 20);
  EXPECT_DOUBLE_EQ(layer_total(sample_report()).total(), 18);
}

/// The row `i` of the sample report without a step.
tax_row without(std::size_t i, const char* id) {
  tax_row row = sample_report().rows[i];
  std::erase_if(row.steps, [&](const tax_step& step) { return step.id == id; });
  return row;
}

TEST(breakdown, of_a_step_that_was_not_measured_is_one_figure) {
  const tax_report report = sample_report();
  const tax_breakdown without_e1 = without(0, "E1").breakdown(report);
  EXPECT_DOUBLE_EQ(without_e1.launch, 0);
  EXPECT_DOUBLE_EQ(without_e1.engine, 0);
  EXPECT_DOUBLE_EQ(without_e1.joint, 2);
  EXPECT_DOUBLE_EQ(without_e1.total(), 10);
  EXPECT_DOUBLE_EQ(without(0, "E1").uncertainty(report).launch, 0);
  // Kernels that add have no E2 on GPUs.
  const tax_row down = without(1, "E2");
  EXPECT_DOUBLE_EQ(down.breakdown(report).engine, 0);
  EXPECT_DOUBLE_EQ(down.breakdown(report).joint, 2);
  EXPECT_DOUBLE_EQ(down.breakdown(report).total(), 20);
  EXPECT_GT(down.uncertainty(report).joint, 0);
  EXPECT_EQ(down.why_not_separable(report),
            "E2 was not measured, so engine and bulk-synchronous tax are not separable here");
  for (const tax_part& part : tax_parts) {
    const bool merged = part.key == "engine" || part.key == "bulk_synchronous" ||
                        part.key == "stand_in";  // which it has not
    EXPECT_EQ(down.separates(part, report), !merged) << part.key;
  }
}

// In text, JSON, HTML and the picture, of the operation and of a layer that has no other.
TEST(renderings, say_not_separable_where_a_step_is_missing) {
  tax_report report = sample_report();
  report.rows = {without(1, "E2")};
  const auto times = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  };
  const std::string cell(not_separable);
  EXPECT_EQ(times(render_table(report, 200), cell), 2 + 3 * 2 + 1)
      << "the waterfall, three lines of the table, and the reason\n"
      << render_table(report, 200);
  EXPECT_EQ(times(render_html(report), cell), 2 + 2 + 3 * 2 + 1) << render_html(report);
  EXPECT_EQ(times(render_plot(report), cell), 2);
  const auto json = nlohmann::json::parse(to_json(report));
  for (const auto& parts : {json["rows"][0]["derived"], json["rows"][0]["derived_uncertainty"],
                            json["average_layer"], json["whole_model"]}) {
    EXPECT_EQ(parts["engine"], cell);
    EXPECT_EQ(parts["bulk_synchronous"], cell);
    EXPECT_TRUE(parts["joint"].is_number());
    EXPECT_TRUE(parts["launch"].is_number());
  }
}

/// A step whose trace has so many seconds of a part, and one of computing.
traced_step traced_as(const char* id, trace_part part, double seconds) {
  traced_step step{id, {}, std::vector<trace_breakdown>(1), "launch at rank 0", {}};
  step.path[trace_part::compute] = 1;
  step.path[part] += seconds;
  return step;
}

TEST(traced_taxes, say_for_each_tax_whether_signs_agree) {
  tax_report report = sample_report();
  EXPECT_TRUE(traced_taxes(report).empty());
  EXPECT_NE(render_table(report).find("There is no second account"), std::string::npos);
  // qkv: launch tax 1, bulk-synchronous tax 2, locality tax 1 +- 0.08. The trace has no launch tax.
  report.rows[0].traced = {
      traced_as("E0", trace_part::launch, 0.2), traced_as("E1", trace_part::launch, 0.4),
      traced_as("E2", trace_part::late_peer, 2.1), traced_as("E3", trace_part::movement, 0.8),
      traced_as("E4", trace_part::movement, 0)};
  auto taxes = traced_taxes(report);
  ASSERT_EQ(taxes.size(), 3U) << "the engine is no tax";
  EXPECT_EQ(taxes[0].tax, "launch tax");
  EXPECT_NEAR(taxes[0].by_trace, -0.2, 1e-12);
  EXPECT_EQ(taxes[0].agrees, false);
  EXPECT_NE(
      taxes[0].difference.find("qkv: launch tax is 1.00 s by ablation and -0.20 s by the trace"),
      std::string::npos)
      << taxes[0].difference;
  EXPECT_EQ(taxes[1].agrees, true);
  EXPECT_NEAR(taxes[1].by_trace, 2.1, 1e-12);
  EXPECT_EQ(taxes[1].difference, "") << "by less than 5 % of E0";
  EXPECT_EQ(taxes[2].agrees, true);
  EXPECT_NEAR(taxes[2].by_trace, 0.8, 1e-12);
  const std::string told = "agree in sign for 2 of 3 taxes";
  for (const std::string& text : {render_table(report, 200), render_html(report), to_json(report)})
    EXPECT_NE(text.find(told), std::string::npos) << text;
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["traced_taxes"][0]["same_sign"], false);
  EXPECT_EQ(json["traced_taxes"][1]["same_sign"], true);
  EXPECT_EQ(from_json(to_json(report)), report);
  // A tax within its uncertainty has no sign.
  report.rows[0].steps[1].time = {9.99, 9.8, 10.2};
  EXPECT_EQ(traced_taxes(report)[0].agrees, std::nullopt);
  // With a slow E3 bulk-synchronous and locality tax are compared together.
  report.rows[0].steps[3].time = {9, 8.875, 9.125};
  taxes = traced_taxes(report);
  ASSERT_EQ(taxes.size(), 2U);
  EXPECT_EQ(taxes[1].tax, "bulk-synchronous tax and locality tax");
  EXPECT_NEAR(taxes[1].by_ablation, 3, 1e-12);
  EXPECT_NEAR(taxes[1].by_trace, 2.1, 1e-12);
  EXPECT_EQ(taxes[1].agrees, true);
}

TEST(breakdown, of_one_rank_has_no_bulk_synchronous_tax) {
  tax_report report = sample_report();
  report.tensor_parallel = 1;
  const tax_row row = without(0, "E3");
  EXPECT_DOUBLE_EQ(row.breakdown(report).bulk_synchronous, 0);
  EXPECT_DOUBLE_EQ(row.breakdown(report).locality, 3);
  EXPECT_EQ(row.why_not_separable(report), "");
}

/// As predictions of a prefill on 8 GPUs have it: E3 slower than E2 by 0.8 of 4.7 ms.
TEST(breakdown, of_a_step_slower_than_the_step_before_is_one_figure) {
  tax_report report = sample_report();
  tax_row& row = report.rows[0];
  row.steps[3].time = {9, 8.875, 9.125};
  tax_breakdown parts = row.breakdown(report);
  EXPECT_EQ(parts.bulk_synchronous, 0);
  EXPECT_EQ(parts.locality, 0);
  EXPECT_DOUBLE_EQ(parts.joint, 3);
  EXPECT_DOUBLE_EQ(parts.total(), 10);
  EXPECT_EQ(parts.stand_in, 0) << "E4 is quicker than E2, so the cost ended with E3";
  EXPECT_EQ(
      row.why_not_separable(report),
      "E3 took longer than E2, so bulk-synchronous tax and locality tax are not separable here");
  const auto costs = row.stand_ins(report);
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].id + " " + costs[0].before, "E3 E2");
  EXPECT_DOUBLE_EQ(costs[0].seconds, 1);
  EXPECT_FALSE(costs[0].counted);
  EXPECT_EQ(from_json(to_json(report)), report);
  EXPECT_NE(to_json(report).find("not_separable"), std::string::npos);
  for (const std::string& shown : {render_table(report), render_html(report)}) {
    EXPECT_NE(shown.find("not separable here"), std::string::npos);
    EXPECT_NE(shown.find("ost of the stand-in"), std::string::npos);
  }
  EXPECT_EQ(render_table(sample_report()).find("joint"), std::string::npos);
  // E4 slower than E3: what fusing costs stays.
  row.steps[3].time = {4, 3.875, 4.125};
  parts = row.breakdown(report);
  EXPECT_DOUBLE_EQ(parts.bulk_synchronous, 4);
  EXPECT_DOUBLE_EQ(parts.stand_in, -1);
  EXPECT_EQ(parts.locality, 0);
  EXPECT_EQ(parts.joint, 0);
  EXPECT_EQ(
      row.why_not_separable(report),
      "E4 took longer than E3, so locality tax is not separable from the cost of the stand-in");
  // Without E2 the step before it is E1.
  tax_row sum = without(1, "E2");
  sum.steps[2].time = {22, 21.875, 22.125};
  EXPECT_DOUBLE_EQ(sum.breakdown(report).joint, 5);
  EXPECT_DOUBLE_EQ(sum.breakdown(report).locality, 0);
  EXPECT_EQ(sum.why_not_separable(report),
            "E2 was not measured and E3 took longer than E1, so engine, bulk-synchronous tax and "
            "locality "
            "tax are not separable here");
  // By less than chance explains, they are two figures.
  row.steps[3].time = {8.05, 7.925, 8.175};
  EXPECT_NEAR(row.breakdown(report).bulk_synchronous, -0.05, 1e-12);
  EXPECT_EQ(row.why_not_separable(report), "");
}

/// E4 begins as E1 does and multiplies as E2 does, but a cost that is larger than what separates E4
/// from the bound is not in it.
TEST(breakdown, of_a_slow_stand_in_for_the_library) {
  const tax_report report = sample_report();
  tax_row row = report.rows[0];
  row.steps[2].time = {9.5, 9.375, 9.625};  // E1 is 9, and E4 is 1 above the bound
  EXPECT_DOUBLE_EQ(row.breakdown(report).stand_in, -0.5);
  EXPECT_DOUBLE_EQ(row.breakdown(report).bulk_synchronous, 3.5);
  EXPECT_EQ(row.why_not_separable(report),
            "E2 took longer than E1, so engine is not separable from the cost of the stand-in");
  row.steps[2].time = {50, 49.875, 50.125};
  EXPECT_EQ(row.breakdown(report).stand_in, 0);
  EXPECT_EQ(row.breakdown(report).bulk_synchronous, 0) << "and not 44";
  EXPECT_DOUBLE_EQ(row.breakdown(report).joint, 3);
  EXPECT_EQ(row.why_not_separable(report),
            "E2 took longer than E1, so engine and bulk-synchronous tax are not separable here");
}

TEST(breakdown, of_a_run_below_the_bound_has_no_negative_remainder) {
  const tax_report report = sample_report();
  tax_row row = report.rows[0];
  row.compute = exactly(7);
  const tax_breakdown parts = row.breakdown(report);
  EXPECT_EQ(parts.remainder, 0);
  EXPECT_DOUBLE_EQ(parts.bound, 5);
  EXPECT_DOUBLE_EQ(parts.total(), 10);
  EXPECT_NE(row.why_not_separable(report).find("E4 is below the bound"), std::string::npos);
}

/// Steps that are about as long as the one before them, or far from it.
tax_row random_row(std::mt19937& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  tax_row row = sample_report().rows[random() % 2];
  double before = between(1, 10);
  for (tax_step& step : row.steps) {
    const double median = before * (random() % 3 == 0 ? between(0.3, 3) : between(0.8, 1.05));
    const double wide = random() % 4 == 0 ? 0 : median * between(0, 0.3);
    step.time = {median, median - wide * between(0, 1), median + wide};
    before = median;
  }
  row.compute = exactly(before * between(0.3, 1.1));
  row.link = exactly(before * between(0, 1.1));
  for (const char* gone : {"E1", "E2", "E3"}) {
    if (random() % 4 == 0)
      std::erase_if(row.steps, [&](const tax_step& step) { return step.id == gone; });
  }
  return row;
}

bool adds_up_without_negative_parts(const tax_breakdown& parts, const tax_breakdown& chance) {
  const double whole = parts.total();
  return std::ranges::all_of(tax_parts, [&](const tax_part& part) {
    const double value = parts.*part.value;
    if (part.value == &tax_breakdown::stand_in) return value <= 0;
    return value >= -(chance.*part.value) - 1e-12 * whole;
  });
}

/// The steps without which a part has no figure of its own.
std::vector<std::string> ends_of(const tax_part& part) {
  for (std::size_t i = 0; i < 4; ++i) {
    if (tax_parts[i].value == part.value)
      return {"E" + std::to_string(i), "E" + std::to_string(i + 1)};
  }
  return {};
}

TEST(breakdown, of_random_steps) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    tax_report report = sample_report();
    report.repeats = static_cast<int>(random() % 30 + 1);
    report.rows = {random_row(random), random_row(random)};
    for (const tax_row& row : report.rows) {
      const double today = row.step("E0")->time.median;
      const tax_breakdown parts = row.breakdown(report);
      EXPECT_NEAR(parts.total(), today, 1e-12 * today);
      EXPECT_TRUE(adds_up_without_negative_parts(parts, row.uncertainty(report)));
      std::vector<std::string> not_ends;  // steps that say nothing of the parts on both sides
      for (const stand_in_cost& cost : row.stand_ins(report)) {
        EXPECT_GT(cost.seconds, cost.uncertainty);
        not_ends.push_back(cost.id);
      }
      for (const tax_part& part : tax_parts) {
        const auto ends = ends_of(part);
        const bool missing = std::ranges::any_of(
            ends, [&](const std::string& id) { return row.step(id) == nullptr; });
        const bool slow = std::ranges::any_of(ends, [&](const std::string& id) {
          return std::ranges::find(not_ends, id) != not_ends.end();
        });
        const bool separate = row.separates(part, report);
        if (missing) {
          EXPECT_FALSE(separate) << part.key;
        } else if (!ends.empty() && !slow) {
          EXPECT_TRUE(separate) << part.key;
        }
        if (!separate) {
          EXPECT_EQ(parts.*part.value, 0) << part.key;
        }
      }
    }
    EXPECT_TRUE(adds_up_without_negative_parts(layer_total(report), layer_uncertainty(report)));
    if (i % 20 != 0) continue;
    const auto json = nlohmann::json::parse(to_json(report));
    for (std::size_t r = 0; r < report.rows.size(); ++r) {
      for (const tax_part& part : tax_parts) {
        const auto& value = json["rows"][r]["derived"][std::string(part.key)];
        const bool separate = is_sum(part) || report.rows[r].separates(part, report);
        EXPECT_EQ(value.is_number(), separate) << value;
        if (!separate) {
          EXPECT_EQ(value, "not separable");
        }
      }
    }
    EXPECT_EQ(from_json(to_json(report)), report);
    for (const std::string& text : {finding(report), render_table(report), render_html(report)})
      EXPECT_EQ(text.find("no difference that") != std::string::npos &&
                    finding(report).find("% of E0") != std::string::npos,
                false)
          << finding(report);
  }
}

TEST(breakdown, uncertainty_by_hand) {
  // (p90 - p10) / sqrt(25) = 0.05 for each step, and a sixth more since the runs are few.
  const double step = 0.05 * 7 / 6;
  const tax_breakdown chance = sample_report().rows[0].uncertainty(sample_report());
  EXPECT_NEAR(chance.launch, std::sqrt(2) * step, 1e-12);
  EXPECT_NEAR(chance.remainder, step, 1e-12);
  EXPECT_EQ(chance.bound, 0);
  EXPECT_NEAR(layer_uncertainty(sample_report()).remainder, step * 1.0 + step * 0.4, 1e-12);
}

TEST(breakdown, the_bound_has_the_uncertainty_of_its_larger_part) {
  const tax_report report = sample_report();
  tax_row row = report.rows[0];
  row.compute = {4, 3.5, 5};
  row.link = {1, 0, 3};
  EXPECT_NEAR(row.uncertainty(report).bound, 0.35, 1e-12);
  EXPECT_NEAR(row.uncertainty(report).remainder, 7.0 / 6 * std::hypot(0.3, 0.05), 1e-12);
  row.link = {6, 5.5, 6};
  EXPECT_NEAR(row.uncertainty(report).bound, 0.7 / 6, 1e-12) << "the link is the bound";
}

TEST(breakdown, parts_add_up_to_e0) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    const tax_report report = random_report(random);
    double model = 0;
    for (const tax_row& row : report.rows) {
      const double today = row.step("E0")->time.median;
      EXPECT_NEAR(row.breakdown(report).total(), today, 1e-12 * today);
      EXPECT_NEAR(row.breakdown(report).bound + row.breakdown(report).remainder,
                  row.step("E4")->time.median, 1e-12 * today);
      model += today * static_cast<double>(row.op.occurrences());
    }
    EXPECT_NEAR(model_total(report).total(), model, 1e-9 * model);
  }
}

TEST(json, round_trip) {
  EXPECT_EQ(from_json(to_json(sample_report())), sample_report());
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    const tax_report report = random_report(random);
    EXPECT_EQ(from_json(to_json(report)), report);
  }
}

TEST(json, holds_derived_values) {
  const auto parsed = nlohmann::json::parse(to_json(sample_report()));
  EXPECT_DOUBLE_EQ(parsed["rows"][0]["derived"]["bulk_synchronous"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(parsed["average_layer"]["total"].get<double>(), 18);
  EXPECT_DOUBLE_EQ(parsed["whole_model"]["engine"].get<double>(), 10);
  EXPECT_DOUBLE_EQ(parsed["whole_model"]["stand_in"].get<double>(), -4);
  EXPECT_EQ(parsed["rows"][1]["derived"]["engine"], "not separable");
  EXPECT_EQ(parsed["rows"][1]["stand_ins"][0]["step"], "E2");
  EXPECT_TRUE(parsed["rows"][1]["stand_ins"][0]["counted"].get<bool>());
  EXPECT_EQ(parsed["finding"].get<std::string>(), finding(sample_report()));
}

TEST(json, refuses_other_documents) {
  for (const char* text :
       {"", "{", "[]", "{}", "null", R"({"format": "untax-taxes", "format_version": 2})",
        R"({"format": "untax-taxes", "format_version": 1})"}) {
    EXPECT_NE(error_text([&] { (void)from_json(text); }), "") << text;
  }
  EXPECT_NE(error_text([] {
              (void)from_json("{");
            }).find("tax report:1:2: this is not JSON; `untax taxes --json`"),
            std::string::npos);
  EXPECT_NE(error_text([] { (void)from_json("{}"); }).find("\"format\" is missing"),
            std::string::npos);
  for (const char* key : {"model", "rows", "repeats", "dtype"}) {
    auto parsed = nlohmann::json::parse(to_json(sample_report()));
    parsed.erase(key);
    const std::string text = error_text([&] { (void)from_json(parsed.dump()); });
    EXPECT_NE(text.find(key), std::string::npos) << key;
    EXPECT_EQ(text.find("json.exception"), std::string::npos) << text;
  }
}

// Every renderer refuses a report it cannot show.
void expect_refused(const tax_report& report, const std::string& part) {
  EXPECT_NE(error_text([&] { check(report); }).find(part), std::string::npos)
      << error_text([&] { check(report); });
  EXPECT_NE(error_text([&] { (void)to_json(report); }), "");
  EXPECT_NE(error_text([&] { (void)render_table(report); }), "");
  EXPECT_NE(error_text([&] { (void)render_html(report); }), "");
}

TEST(check, incomplete_reports) {
  tax_report report = sample_report();
  report.rows.clear();
  expect_refused(report, "no rows");
  report = sample_report();
  report.rows[1].steps.pop_back();
  expect_refused(report, "down: step E4 is missing");
  report = sample_report();
  report.rows[0].steps.push_back(report.rows[0].steps[2]);
  expect_refused(report, "qkv: step E2 occurs twice");
  report.rows[0].steps.back().id = "E5";
  expect_refused(report, "\"E5\"");
  report = sample_report();
  report.rows[0].steps[3].time.p90 = std::numeric_limits<double>::quiet_NaN();
  expect_refused(report, "qkv, E3, p90 is nan");
  report = sample_report();
  report.rows[0].link.p10 = -1;
  expect_refused(report, "qkv: link, p10 is -1");
  report = sample_report();
  report.layers = 0;
  expect_refused(report, "layers is 0");
}

TEST(finding, names_the_largest_tax) {
  EXPECT_EQ(
      finding(sample_report()),
      "An average layer takes 17.00 s in bulk-synchronous form in a graph (E1; 18.00 s "
      "launched one by one, E0) and 11.00 s with the best fused patterns (E4), "
      "1.55 times as fast as E1, 1.64 times as fast as E0. The largest tax is the "
      "bulk-synchronous tax: 3.20 s, 18 % of E0. The cost of the stand-in, which a step takes "
      "more than the one before it, is 0.40 s. "
      "E4 is 1.25 times the "
      "bound of 8.80 s.");
}

TEST(finding, names_operations_left_out) {
  tax_report report = sample_report();
  EXPECT_EQ(coverage(report), "");
  report.unmeasured = {{report.rows[1].op, "because"}};
  EXPECT_EQ(coverage(report), ", without down");
  EXPECT_NE(finding(report).find("An average layer, without down, takes 17.00 s"),
            std::string::npos)
      << finding(report);
  report.unmeasured.push_back({report.rows[0].op, "because"});
  EXPECT_EQ(coverage(report), ", without down and qkv");
  report.unmeasured.clear();
  EXPECT_EQ(title_of_model(report), "whole model");
  report.left_out = {"routed experts"};
  EXPECT_EQ(title_of_model(report), "model, without routed experts");
  EXPECT_EQ(from_json(to_json(report)), report);
  for (const std::string& text : {render_table(report, 100, {}), render_html(report)}) {
    EXPECT_EQ(text.find("whole model"), std::string::npos);
    EXPECT_NE(text.find("model, without routed experts"), std::string::npos);
  }
  EXPECT_NE(render_table(report, 100, {}).find(", without routed experts, one execution of each"),
            std::string::npos);
}

TEST(json, reads_reports_of_older_versions) {
  auto parsed = nlohmann::json::parse(to_json(sample_report()));
  EXPECT_FALSE(parsed.contains("gpus"));
  for (auto& row : parsed["rows"]) {
    row.erase("compute_spread");
    row.erase("link_spread");
    row.erase("gather");
  }
  EXPECT_EQ(from_json(parsed.dump()), sample_report());
}

TEST(finding, says_when_nothing_was_gained) {
  tax_report report = sample_report();
  for (tax_row& row : report.rows) {
    for (tax_step& step : row.steps) step.time = {30, 20, 40};
  }
  EXPECT_NE(finding(report).find("no difference that this measurement can tell"), std::string::npos)
      << finding(report);
  EXPECT_NE(finding(report).find("None of the three taxes is larger than the uncertainty"),
            std::string::npos);
}

TEST(finding, says_when_fusing_loses) {
  tax_report report = sample_report();
  for (tax_row& row : report.rows) row.steps.back().time = {40, 39, 41};
  EXPECT_NE(finding(report).find("fusing loses here"), std::string::npos) << finding(report);
}

}  // namespace
}  // namespace untax::test
