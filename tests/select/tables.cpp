#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

#include "support.hpp"

namespace untax::select {
namespace {

using test::refusal;
using test::sample_schema;

const std::string head = "name,n,longest,t_plain,t_wide,t_padded\n";

std::string said_of(const std::string& csv, const schema& what = sample_schema()) {
  return refusal([&] { (void)read_csv(csv, "t.csv", what); });
}

TEST(tables, are_read) {
  schema what = sample_schema();
  what.labels = {"name"};
  what.unit = 1e-3;
  const table t =
      read_csv(head + "\"one, two\",10,4,1,2,3\nx,20,40,4,,\ny,1,1,,,\n", "t.csv", what);
  ASSERT_EQ(t.records(), 2U);  // the last has no time
  EXPECT_EQ(t.labels[0], "one, two");
  EXPECT_EQ(t.features(0, 0), 10);
  EXPECT_EQ(t.features(0, 1), 5);
  EXPECT_EQ(t.features(0, 2), 4);
  EXPECT_DOUBLE_EQ(t.times(0, 2), 3e-3);
  EXPECT_TRUE(std::isnan(t.times(1, 1)));
  EXPECT_DOUBLE_EQ(t.setups(0, 2), 1e-8 * 1e-3);
  EXPECT_EQ(t.allowed(0, 2), 1);
  EXPECT_EQ(t.allowed(1, 2), 0);
  EXPECT_DOUBLE_EQ(t.cost(0, 2, 10), 1e-11 + 10 * 3e-3);
  EXPECT_DOUBLE_EQ(t.gathering[1], (1e-6 + 20e-10) * 1e-3);
}

TEST(tables, in_json_are_read) {
  const table t =
      read_json(R"([{"n": 10, "longest": 4, "t_plain": 1, "t_wide": 2, "t_padded": null}])",
                "t.json", sample_schema());
  ASSERT_EQ(t.records(), 1U);
  EXPECT_EQ(t.features(0, 0), 10);
  EXPECT_TRUE(std::isnan(t.times(0, 2)));
  for (const char* wrong : {"", "{}", "[]", "[1]", "[{]", "[[1]]"})
    EXPECT_NE(refusal([&] { (void)read_json(wrong, "t.json", sample_schema()); }), "") << wrong;
}

TEST(tables, may_have_other_separators) {
  for (const char separator : {';', '\t'}) {
    std::string text = head + "a,10,4,1,2,3\n";
    std::ranges::replace(text, ',', separator);
    EXPECT_EQ(read_csv(text, "t.csv", sample_schema()).times(0, 2), 3);
  }
  EXPECT_NE(said_of("name;n;longest;t_plain;t_wide;t_padded\na;10;4;1,5;2;3\n")
                .find("a decimal point has to be a point"),
            std::string::npos);
}

TEST(tables, have_no_times_of_0) {
  const table t = read_csv(head + "a,10,4,0,2,3\nb,10,4,0,,\n", "t.csv", sample_schema());
  EXPECT_EQ(t.records(), 1U);
  EXPECT_TRUE(std::isnan(t.times(0, 0)));
  EXPECT_EQ(t.zero_times, 2U);
}

TEST(tables, may_have_a_line_for_each_kernel) {
  schema what = sample_schema();
  what.labels = {"name"};
  what.kernel_column = "kernel";
  what.time_column = "elapsed";
  for (candidate& c : what.candidates) c.time = c.name;
  const std::string lines =
      "kernel,name,n,longest,elapsed\nplain,a,10,4,3\nwide,a,10,4,2\nplain,b,20,9,5\n"
      "plain,a,10,4,1\npadded,b,20,9,\nother,b,20,9,7\n";
  const table t = read_csv(lines, "t.csv", what);
  ASSERT_EQ(t.records(), 2U);
  EXPECT_EQ(t.labels[1], "b");
  EXPECT_EQ(t.times(0, 0), 1);  // the least of two
  EXPECT_EQ(t.times(0, 1), 2);
  EXPECT_TRUE(std::isnan(t.times(0, 2)));
  EXPECT_EQ(t.times(1, 0), 5);
  EXPECT_EQ(read_schema(to_json(what), "s.json").time_column, "elapsed");
  EXPECT_NE(said_of("kernel,name,n,longest,elapsed\nplain,a,10,4,3\n", what)
                .find("no line has \"wide\" in column \"kernel\"; there are plain"),
            std::string::npos);
  EXPECT_NE(said_of(lines).find("needs \"long\" in its schema"), std::string::npos);
  what.labels.clear();
  EXPECT_NE(said_of(lines, what).find("needs \"labels\""), std::string::npos);
}

TEST(tables, name_candidates_with_hyphens) {
  schema what = sample_schema();
  what.candidates[0].name = "row-wise.v2";
  EXPECT_EQ(refusal([&] { require_usable(what); }), "");
  EXPECT_EQ(identifier_of(what.candidates[0]), "row_wise_v2");
  what.candidates[1].name = "row_wise_v2";
  EXPECT_NE(refusal([&] { require_usable(what); }).find("two candidates"), std::string::npos);
  what.candidates[1].name = "row wise";
  EXPECT_NE(refusal([&] { require_usable(what); }).find("letters, digits, _, - and ."),
            std::string::npos);
}

TEST(tables, that_are_wrong_are_refused_with_the_line) {
  const auto expect = [](const std::string& csv, const std::string& words) {
    const std::string said = said_of(csv);
    EXPECT_NE(said.find(words), std::string::npos) << csv << "\nsays: " << said;
  };
  expect("", "empty");
  expect(head, "no line has a time");
  expect("name,n,t_plain,t_wide,t_padded\nx,1,1,1,1\n", "no column \"longest\"");
  expect("name,n,longest,t_plain,t_wide\nx,1,1,1,1\n", "no column \"t_padded\"");
  expect(head + "x,1,1,1,1\n", "line 2 has 5 cells");
  expect(head + "x,1,1,1,1,1\ny,many,1,1,1,1\n", "line 3: \"many\" in column \"n\"");
  expect(head + "x,1,1,fast,1,1\n", "\"fast\" in column \"t_plain\"");
  expect(head + "x,1,1,-1,1,1\n", "the time of plain is -1");
  expect(head + "x,1,1,1,-1,1\n", "the time of wide is -1");
  expect(head + "x,1,1,1,1,inf\n",
         "line 2: \"inf\" in column \"t_padded\" is not a finite number; leave it");
  expect(head + "x,1,1,nan,1,1\n",
         "line 2: \"nan\" in column \"t_plain\" is not a finite number; leave it");
  expect(head + "x\x1b[31m,1,1,1,1,1\n", "line 2: a cell contains the control character U+001B");
  expect(head + "x,,1,1,1,1\n", "feature n is nan");
  expect(head + "x,-1e12,1,1,1,1\n", "the setup of padded is -1000");
  expect(head + "\"x,1,1,1,1,1\n", "not comma-separated text");
}

TEST(tables, from_python_name_the_record_without_a_number) {
  const auto said = [](const std::string& time) {
    return refusal([&] {
      (void)read_json(
          R"([{"n": 10, "longest": 4, "t_plain": 1, "t_wide": 2, "t_padded": )" + time + "}]",
          "t.json", sample_schema());
    });
  };
  EXPECT_NE(said("NaN").find("line 1: \"NaN\" in column \"t_padded\" is not a finite number"),
            std::string::npos)
      << said("NaN");
  EXPECT_NE(said("-Infinity").find("\"-Infinity\" in column"), std::string::npos);
  EXPECT_NE(refusal([] {
              (void)read_json("[{\"n\": 1}, 5]", "t.json", sample_schema());
            }).find("record 2 is 5; it has to be an object"),
            std::string::npos);
}

TEST(tables, may_begin_with_a_byte_order_mark) {
  EXPECT_EQ(read_csv("\xef\xbb\xbf" + head + "x,10,4,1,2,3\n", "t.csv", sample_schema()).records(),
            1U);
}

TEST(tables, files_that_cannot_be_read_are_refused) {
  for (const char* path : {"/nonexistent/t.csv", "/"})
    EXPECT_NE(refusal([&] { (void)read_table(path, sample_schema()); }), "") << path;
}

TEST(schemas, come_back_from_json) {
  const schema s = sample_schema();
  const schema back = read_schema(to_json(s), "s.json");
  EXPECT_EQ(to_json(back), to_json(s));
  ASSERT_EQ(back.features.size(), 3U);
  EXPECT_FALSE(back.features[1].given);
  EXPECT_TRUE(back.features[2].gathered);
}

TEST(schemas, that_are_wrong_are_refused) {
  const auto expect = [](const std::string& text, const std::string& words) {
    const std::string said = refusal([&] { (void)read_schema(text, "s.json"); });
    EXPECT_NE(said.find(words), std::string::npos) << text << "\nsays: " << said;
  };
  const std::string two =
      R"("candidates": [{"name": "a", "time": "t"}, {"name": "b", "time": "u"}])";
  expect("", "not JSON");
  expect("[]", "has to be an object");
  expect("{" + two + "}", "costs nothing");
  expect(R"({"known": ["n"]})", "no field \"candidates\"");
  expect(R"({"known": ["n"], "candidates": [{"name": "a", "time": "t"}]})",
         "a selector needs 2 or more");
  expect(R"({"known": ["n", "n"], )" + two + "}", "two features \"n\"");
  expect(R"({"known": ["iterations"], )" + two + "}", "iterations");
  expect(R"({"known": ["double"], )" + two + "}", "named as a variable");
  expect(R"({"known": ["n"], "unit": -1, )" + two + "}", "above 0");
  expect(R"({"known": ["n"], "iterations": [], )" + two + "}", "iterations");
  expect(R"({"known": ["n"], "guess": 1, )" + two + "}", "means nothing");
  expect(R"({"known": ["n"], "candidates": [{"name": "a", "time": "t", "guard": "n < 1"},
          {"name": "b", "time": "u", "guard": "n < 1"}]})",
         "has a guard");
}

TEST(training, needs_records) {
  const table t = read_csv(head + "x,1,1,1,1,1\n", "t.csv", sample_schema());
  EXPECT_NE(refusal([&] { (void)train(t); }).find("5 folds of 1 records"), std::string::npos);
}

}  // namespace
}  // namespace untax::select
