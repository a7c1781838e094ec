#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "bench/choosers/lessons.hpp"
#include "bench/choosers/study.hpp"
#include "bench/choosers/ways.hpp"
#include "sample.hpp"
#include "src/core/text_file.hpp"

namespace untax::bench {
namespace {

using choice_test::gathered;

/// The tables that figures are on record for.
const std::vector<tuning_table>& recorded() {
  static const std::vector<tuning_table> tables = [] {
    const std::string folder = UNTAX_SOURCE_DIR "/bench/choosers/tables/";
    return std::vector{load_table(folder + "h200-2.json"), load_table(folder + "h200-4.json")};
  }();
  return tables;
}

std::vector<tuning_entry> checked() {
  const std::string folder = UNTAX_SOURCE_DIR "/bench/results/";
  std::vector<tuning_entry> entries;
  for (const char* file :
       {"h200-2-2026-11-28-tune-check.json", "h200-4-2026-11-25-tune-check.json"}) {
    const std::vector<tuning_entry> some = read_check(text_of_file(folder + file), file);
    entries.insert(entries.end(), some.begin(), some.end());
  }
  return entries;
}

TEST(choosers, have_the_recorded_figures) {
  // Those that take no time; the program makes all of them.
  std::vector<way> ways = all_ways();
  std::erase_if(ways, [](const way& w) {
    return w.name == "a tree a family" || w.name == "tree over expected times";
  });
  ASSERT_EQ(ways.size(), 5U);
  const auto study = nlohmann::json::parse(to_json(study_choosers(recorded(), checked(), ways)));
  const auto on_record =
      nlohmann::json::parse(text_of_file(UNTAX_SOURCE_DIR "/bench/choosers/choosers.json"));
  int result = 0;
  for (const auto& entry : study) {
    for (const auto& other : on_record) {
      bool same = true;
      for (const char* key : {"split", "of", "ranks", "way"})
        same = same && entry[key] == other[key];
      if (!same) continue;
      ++result;
      EXPECT_EQ(entry["problems"], other["problems"]);
      // A compiler may round otherwise.
      for (const char* key : {"within_3_percent", "mean_ratio", "p95_ratio", "worst_ratio"})
        EXPECT_NEAR(double{entry[key]}, double{other[key]}, 0.0011)
            << entry.dump() << "\nmake it again: untax_choosers bench/choosers/choosers.json "
            << "bench/choosers/tables/*.json -- bench/results/*tune-check.json";
    }
  }
  EXPECT_EQ(result, static_cast<int>(study.size()));
  EXPECT_GT(result, 20);
}

TEST(choosers, learn_from_other_shapes_only) {
  const std::vector<tuning_table> rest = without_shape(recorded(), gathered(1, 7168, 8192));
  ASSERT_EQ(rest.size(), recorded().size());
  for (std::size_t i = 0; i < rest.size(); ++i) {
    EXPECT_LT(rest[i].entries.size(), recorded()[i].entries.size());
    for (const tuning_entry& entry : rest[i].entries)
      EXPECT_FALSE(entry.problem.n == 7168 && entry.problem.k == 8192);
  }
}

TEST(choosers, see_features_of_every_entry) {
  const std::vector<tuning_table> tables = recorded();
  const lessons sizes(lesson_kind::sizes, tables);
  const select::table whole = sizes.all();
  EXPECT_EQ(whole.records(), tables[0].entries.size() + tables[1].entries.size());
  EXPECT_EQ(whole.features.cols(), whole.what.features.size());
  for (std::size_t i = 0; i < tables[0].entries.size(); ++i) {
    const std::vector<double> same = sizes.features(tables[0].entries[i].problem);
    for (std::size_t f = 0; f < same.size(); ++f) {
      EXPECT_EQ(whole.features(i, f), same[f]);
      EXPECT_TRUE(std::isfinite(same[f]));
    }
  }
}

TEST(choosers, published_tree_decides_as_described) {
  EXPECT_TRUE(async_tp_fuses(gathered(16, 14336, 4096)));     // a small result
  EXPECT_FALSE(async_tp_fuses(gathered(16, 14336, 16384)));   // whose k is long
  EXPECT_TRUE(async_tp_fuses(gathered(16, 65536, 16384)));    // unless n is large
  EXPECT_FALSE(async_tp_fuses(gathered(2048, 4096, 4096)));   // narrow, little of A
  EXPECT_TRUE(async_tp_fuses(gathered(2048, 14336, 4096)));   // wide
  EXPECT_FALSE(async_tp_fuses(gathered(4096, 14336, 4096)));  // tall
  EXPECT_TRUE(async_tp_fuses(gathered(8192, 4096, 8192)));    // much of A
  EXPECT_FALSE(async_tp_fuses(gathered(8192, 65536, 8192)));  // very wide
  EXPECT_TRUE(async_tp_fuses(gathered(16384, 65536, 8192)));  // and tall
}

TEST(choosers, refuse_files_that_are_no_checks) {
  for (const char* text : {"", "[]", "{}", R"({"format": "untax-bench-tune-check"})",
                           R"({"format": "untax-bench-tune-check", "problems": [{}]})"})
    EXPECT_THROW((void)read_check(text, "x.json"), error) << text;
}

}  // namespace
}  // namespace untax::bench
