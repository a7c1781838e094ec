#include <algorithm>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include <untax/taxes/report.hpp>
#include <untax/taxes/text_table.hpp>

#include "sample.hpp"
#include "src/taxes/waterfall.hpp"

namespace untax::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

tax_report wide_report() {
  tax_report report = sample_report();
  report.model =
      "a-model-with-a-name-so-long-that-it-alone-takes-more-than-the-eighty-columns-of-a-small-"
      "terminal-does";
  report.rows[0].op.name = "shared_gate_up_of_some_other_expert";
  report.rows[0].op.operator_name = "an_operator_with_a_rather_long_name";
  report.rows[1].op.layers = 1 << 20;
  return report;
}

TEST(table, no_line_is_too_wide) {
  for (const tax_report& report : {sample_report(), wide_report()}) {
    for (const int width : {80, 85, 100, 120, 200}) {
      for (const bool utf8 : {true, false}) {
        for (const std::string& line : lines_of(render_table(report, width, {utf8, false}))) {
          EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
          EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
        }
      }
    }
  }
}

TEST(table, has_the_finding) {
  const std::string text = render_table(sample_report(), 200);
  EXPECT_TRUE(contains(text, "The taxes of sample-1b"));
  EXPECT_TRUE(contains(text, "The largest tax is the bulk-synchronous tax: 3.20 s"));
  EXPECT_TRUE(std::regex_search(
      text, std::regex(R"(\nqkv +10 +10\.00 +1\.00 +1\.00 +2\.00 +1\.00 +1\.00 +4\.00 +1\.25\n)")))
      << text;
  EXPECT_TRUE(std::regex_search(
      text, std::regex(R"(\ndown +4 +20\.00 +~0\.00 +not separable +3\.00 +3\.00 +-1\.00 )")))
      << text;
  EXPECT_TRUE(std::regex_search(
      text, std::regex(R"(\ndown +E2 +1\.00 +0\.08 +E1 +yes +bulk_synchronous\n)")))
      << text;
  EXPECT_TRUE(contains(text, "average layer"));
  EXPECT_TRUE(contains(text, "whole model"));
  EXPECT_TRUE(contains(text, "fused_specialized, push"));
  EXPECT_TRUE(contains(text, "- A second note"));
  EXPECT_FALSE(contains(text, "\033"));
  EXPECT_TRUE(contains(render_table(sample_report(), 100, {true, true}), "\033[1m"));
}

TEST(table, plain_ascii_when_asked) {
  const std::string text = render_table(sample_report(), 100, {false, false});
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\n' || (c >= ' ' && c <= '~');
  })) << text;
}

TEST(table, narrow_terminals_get_two_tables_and_whole_figures) {
  const std::string text = render_table(sample_report(), 80);
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(\nqkv +10 +10\.00 +1\.00 +1\.00 +2\.00\n)")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(\nqkv +1\.00 +1\.00 +4\.00 +1\.25\n)")))
      << text;
}

TEST(table, units_follow_the_size) {
  for (const auto& [scale, unit] : {std::pair{1e-6, "us"}, {1e-3, "ms"}, {1.0, "s"}}) {
    tax_report report = sample_report();
    for (tax_row& row : report.rows) {
      for (tax_step& step : row.steps) {
        step.time = {step.time.median * scale, step.time.p10 * scale, step.time.p90 * scale};
      }
      row.compute = exactly(row.compute.median * scale);
      row.link = exactly(row.link.median * scale);
    }
    EXPECT_TRUE(contains(render_table(report), std::string("Times in ") + unit + ",")) << unit;
  }
}

// Every form of the report names the steps that a backend cannot measure, with the reason.
TEST(renderings, list_operations_not_measured_and_gpus) {
  tax_report report = sample_report();
  report.backend = "cuda";
  report.gpus = "4 x GPU X";
  report.driver = "580.1";
  report.libraries = "some libraries";
  report.unmeasured = {{report.rows[1].op, "there is no kernel"}};
  report.unmeasured[0].op.name = "o";
  const std::string page = render_html(report);
  for (const std::string& text : {render_table(report, 200), page}) {
    for (const char* part : {"4 x GPU X", "580.1", "some libraries", "Not measured",
                             "there is no kernel", "average layer, without o"})
      EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(contains(render_html(sample_report()), "Not measured"));
  EXPECT_FALSE(contains(render_table(sample_report()), "Not measured"));
}

TEST(text_table, aligns_and_breaks_text_first) {
  text_table table({{"name", text_table::align::left}, {"value", text_table::align::right}});
  table.add({"a", "1"});
  table.rule();
  table.add({"something long", "12345"});
  table.add({"\u00e9\u00e9"});
  EXPECT_EQ(table.natural_width(), 21);
  EXPECT_EQ(table.render(100, false),
            "name            value\n"
            "---------------------\n"
            "a                   1\n"
            "---------------------\n"
            "something long  12345\n"
            "\u00e9\u00e9\n");
  EXPECT_EQ(lines_of(table.render(16, false))[4], "something  12345");
  EXPECT_EQ(lines_of(table.render(16, false))[5], "long");
  EXPECT_NE(error_text([&] { table.add({"1", "2", "3"}); }), "");
  EXPECT_NE(error_text([&] { table.add({}); }), "");
}

TEST(text_table, columns_of_text_are_broken_into_lines) {
  text_table table({{"n", text_table::align::right}, {"meaning"}});
  table.add({"1", "some words that go on"});
  table.add({"2", ""});
  EXPECT_EQ(table.render(15, false),
            "n  meaning\n---------------\n1  some words\n   that go on\n2\n");
  text_table both({{"two words"}, {"value", text_table::align::right}, {"more"}}, 2);
  both.add({"a b c d e f g h", "12345", "one two"});
  EXPECT_EQ(both.render(18, false),
            "two    value  more\n"
            "words\n"
            "------------------\n"
            "a b c  12345  one\n"
            "d e f         two\n"
            "g h\n");
}

TEST(text_table, a_wide_table_is_divided_and_keeps_its_keys) {
  constexpr auto right = text_table::align::right;
  text_table table({{"m", right}, {"n", right}, {"first", right}, {"second", right}, {"third"}}, 2);
  table.add({"1", "2", "12345", "1", "met"});
  table.rule();
  table.add({"3", "4", "1", "123456"});
  EXPECT_EQ(table.render(20, false),
            "m  n  first  second\n"
            "-------------------\n"
            "1  2  12345       1\n"
            "-------------------\n"
            "3  4      1  123456\n"
            "\n"
            "m  n  third\n"
            "-----------\n"
            "1  2  met\n"
            "-----------\n"
            "3  4\n");
  // As wide as it is: whole. One column less: divided.
  EXPECT_EQ(lines_of(table.render(table.natural_width(), false)).size(), 5);
  EXPECT_EQ(lines_of(table.render(table.natural_width() - 1, false)).size(), 11);
  EXPECT_NE(error_text([&] { text_table({{"m"}}, 0); }), "");
}

TEST(text_table, wrapped_text_keeps_its_words) {
  EXPECT_EQ(wrapped("one two three", 9, "  "), "  one two\n  three\n");
  EXPECT_EQ(wrapped("incomprehensibilities", 10), "incomprehe\nnsibilitie\ns\n");
  EXPECT_EQ(wrapped("", 10), "\n");
}

// Every tag is closed in order; attributes are quoted. Returns what is wrong, or nothing.
std::string unbalanced(const std::string& page) {
  static const std::regex tag(
      R"re(<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z0-9-]+="[^"<>]*")*)\s*(/?)>)re");
  static const std::vector<std::string> single = {"meta"};
  std::string rest = page;
  const std::size_t style_begin = rest.find("<style>");
  const std::size_t style_end = rest.find("</style>");
  rest.erase(style_begin + 7, style_end - style_begin - 7);
  rest.erase(0, rest.find('\n'));  // the DOCTYPE
  std::vector<std::string> open;
  std::size_t angle_brackets = 0;
  for (auto it = std::sregex_iterator(rest.begin(), rest.end(), tag); it != std::sregex_iterator();
       ++it) {
    ++angle_brackets;
    const std::string name = (*it)[2];
    if ((*it)[1] == "/") {
      if (open.empty() || open.back() != name)
        return "</" + name + "> where " + (open.empty() ? "" : open.back()) + " is open";
      open.pop_back();
    } else if ((*it)[4] != "/" && std::find(single.begin(), single.end(), name) == single.end()) {
      open.push_back(name);
    }
  }
  if (!open.empty()) return "<" + open.back() + "> stays open";
  const auto brackets = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '<'));
  return brackets == angle_brackets ? "" : "a < that is no tag";
}

TEST(html, is_one_balanced_page) {
  const std::string page = render_html(sample_report());
  EXPECT_EQ(page.rfind("<!DOCTYPE html>\n<html lang=\"en\">", 0), 0U);
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_EQ(unbalanced(page + "<p>"), "<p> stays open") << "the test itself";
  EXPECT_NE(unbalanced("\n<style></style><b><i></b></i>"), "");
}

TEST(html, loads_no_other_file) {
  const std::string page = render_html(sample_report());
  for (const char* reference :
       {"http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link", "<img"}) {
    EXPECT_FALSE(contains(page, reference)) << reference;
  }
}

TEST(html, holds_every_operation_in_words) {
  const std::string page = render_html(sample_report());
  for (const char* part : {"<h1>sample-1b</h1>", "<h3>qkv</h3>", "<h3>down</h3>",
                           "The largest tax is the bulk-synchronous tax", "fused_specialized, push",
                           "A first note.", "Some Processor @ 2.5 GHz", "whole model",
                           "prefers-color-scheme: dark", "aria-hidden=\"true\""}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
  EXPECT_TRUE(contains(page, "\u22121.00\u202fs")) << "a negative part keeps its sign";
  EXPECT_TRUE(contains(page, "class=\"stand_in less\"")) << "and is drawn as one";
}

TEST(html, escapes_foreign_text) {
  tax_report report = sample_report();
  report.model = "<b>\"m\" & co";
  report.notes = {"<script>alert(1)</script>"};
  report.rows[0].op.name = "<i>";
  report.rows[0].steps[0].ran = "a < b";
  report.cpu = "C&C <cpu>";
  const std::string page = render_html(report);
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_TRUE(contains(page, "&lt;b&gt;&quot;m&quot; &amp; co"));
  EXPECT_FALSE(contains(page, "<script"));
}

TEST(html, bars_stay_inside) {
  tax_report report = sample_report();
  report.rows[0].steps[1].time.median = 30;  // a step that is far slower than E0
  static const std::regex bar(R"re(<rect [^>]*x="(-?[0-9.]+)%" width="(-?[0-9.]+)%")re");
  const std::string page = render_html(report);
  int bars = 0;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), bar); it != std::sregex_iterator();
       ++it, ++bars) {
    EXPECT_GE(std::stod((*it)[1]), 0);
    EXPECT_GE(std::stod((*it)[2]), 0);
    EXPECT_LE(std::stod((*it)[1]) + std::stod((*it)[2]), 100.01);
  }
  EXPECT_EQ(bars, 3 * 7);
}

TEST(html, shows_one_run_of_each_step_with_its_signals) {
  tax_report report = sample_report();
  EXPECT_FALSE(contains(render_html(report), "One run of each"));
  traced_step e1{"E1", {}, {{}, {}}, "compute at rank 0", {}};
  e1.path[trace_part::compute] = 4e-6;
  traced_step e4 = e1;
  e4.id = "E4";
  e1.timeline = {{trace_part::compute, 0, 0, 0, 4e-6, -1, -1, 0},
                 {trace_part::in_flight, 1, 2, 2e-6, 3e-6, 0, 0, 1e-6}};
  for (int i = 0; i < 5000; ++i)
    e4.timeline.push_back(
        {trace_part::movement, 1, i % 8, i * 4e-10, i * 4e-10 + 1e-10, -1, -1, 0});
  report.rows[0].traced = {e1, e4};
  const std::string page = render_html(report);
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_TRUE(contains(page, "qkv, E1: bulk_library, planned, 4.000\u202f\u00b5s")) << page;
  EXPECT_TRUE(contains(page, "in flight from rank 0, 1.000")) << "what a pointer shows";
  EXPECT_TRUE(contains(page, "<line x1=\"25.000%\" y1=\"5\" x2=\"75.000%\" y2=\"63\"/>"));
  EXPECT_TRUE(contains(page, "The 3000 shortest pieces are not drawn."));
  EXPECT_FALSE(contains(page, "<script"));
  EXPECT_LT(page.size(), 1'000'000U);
}

TEST(plot, shows_the_layer_and_loads_no_other_file) {
  tax_report report = sample_report();
  report.model = "a < b";
  const std::string svg = render_plot(report);
  EXPECT_EQ(unbalanced("\n" + svg.substr(svg.find("?>") + 2)), "");
  for (const char* part : {"The taxes of a &lt; b", "An average layer", "Bulk-synchronous tax",
                           "measured on Some Processor", "commit 0123abc"})
    EXPECT_TRUE(contains(svg, part)) << part;
  EXPECT_FALSE(contains(svg, "href")) << svg;
  // The layer's E0 is 18 s and its bound 8.8 s: 500 pixels, and what 8.8 of 18 are of them.
  EXPECT_TRUE(contains(svg, "<rect class=\"total\" x=\"250.00\"")) << svg;
  EXPECT_TRUE(contains(svg, "<rect class=\"bound\" x=\"250.00\"")) << svg;
  report.predicted = "predicted for 8 x H200 by untax's timing engine";
  EXPECT_TRUE(contains(render_plot(report), "Times are predicted for 8 x H200"));
  // The spread of a few simulations says nothing of the error of a prediction.
  EXPECT_FALSE(contains(render_html(report), "class=\"chance\""));
  report.predicted.clear();
  EXPECT_TRUE(contains(render_html(report), "class=\"chance\""));
}

TEST(plot, bars_hang_together_between_0_and_1) {
  for (const double e1 : {9.0, 30.0}) {
    tax_report report = sample_report();
    report.rows[0].steps[1].time.median = e1;
    const auto bars = waterfall_bars(report, nullptr, &tax_part::title);
    const bool slower = e1 > 10;
    ASSERT_EQ(bars.size(), slower ? 9U : 8U) << "E1 leaves a joint tax behind";
    EXPECT_EQ(bars.back().to, 0) << "all parts add up to the total";
    for (std::size_t i = 0; i < bars.size(); ++i) {
      EXPECT_GE(bars[i].low(), -1e-12);
      EXPECT_LE(bars[i].low() + bars[i].width(), 1 + 1e-12);
      EXPECT_EQ(bars[i].from, i == 0 ? 0 : bars[i - 1].to);
    }
    for (const waterfall_bar& bar : bars)
      EXPECT_EQ(bar.seconds < 0, bar.key == "stand_in") << bar.key;
    EXPECT_EQ(bars[2].separable, !slower) << "engine";
  }
}

}  // namespace
}  // namespace untax::test
