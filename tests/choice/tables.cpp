// The format of tables: what is written is read, and what is wrong is refused with its place.
#include "ops/choice/table.hpp"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample.hpp"
#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace choice_test {
namespace {

using untax::errc;
using untax::load_table;
using untax::parse_table;
using untax_test::error_of;
using untax_test::expect_error;
using json = nlohmann::ordered_json;

TEST(tables, what_is_written_is_read) {
  const tuning_table table = sample_table();
  const tuning_table again = parse_table(to_json(table), "here");
  EXPECT_EQ(to_json(again), to_json(table));
  EXPECT_EQ(again.device, table.device);
  EXPECT_EQ(again.repeats, table.repeats);
  EXPECT_EQ(again.rates.link, table.rates.link);
  ASSERT_EQ(again.entries.size(), table.entries.size());
  for (std::size_t i = 0; i < table.entries.size(); ++i) {
    EXPECT_EQ(again.entries[i].problem, table.entries[i].problem);
    EXPECT_EQ(again.entries[i].seconds, table.entries[i].seconds);
  }
}

TEST(tables, an_entry_is_a_line) {
  const std::string text = to_json(sample_table());
  EXPECT_EQ(text.find("\n,"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  {\"operator\":\"gemm_all_scatter\",\"ranks\":4,\"m\":512,"),
            std::string::npos)
      << text;
}

/// A change to a right document, and what the refusal has to say.
struct mutant {
  void (*change)(json&);
  std::vector<std::string> says;
};

TEST(tables, mutants_are_refused_with_their_place) {
  const std::vector<mutant> mutants = {
      {[](json& d) { d["format"] = "untax-taxes"; }, {"untax-taxes", "\"untax-tune\" 1"}},
      {[](json& d) { d["format_version"] = 2; }, {"format", "2"}},
      {[](json& d) { d.erase("format"); }, {"\"format\" is missing"}},
      {[](json& d) { d.erase("device"); }, {"\"device\" is missing"}},
      {[](json& d) { d["device"] = 7; }, {"\"device\" is 7", "a text"}},
      {[](json& d) { d["dtype"] = "fp32"; }, {"dtype \"fp32\" is not known", "bf16, fp16"}},
      {[](json& d) { d["repeats"] = 0; }, {"\"repeats\" is 0", "from 1"}},
      {[](json& d) { d.erase("rates"); }, {"\"rates\" is missing"}},
      {[](json& d) { d["rates"]["flops_per_second"] = 0; }, {"flops_per_second", "above 0"}},
      {[](json& d) { d["rates"]["link_bytes_per_second"] = "fast"; }, {"\"fast\"", "above 0"}},
      {[](json& d) { d["entries"] = json::array(); }, {"entries", "at least one"}},
      {[](json& d) { d["entries"] = 3; }, {"entries", "at least one"}},
      {[](json& d) { d["entries"][1] = 3; }, {"entry 2", "\"operator\" is missing"}},
      {[](json& d) { d["entries"][1]["operator"] = "gemm"; },
       {"entry 2", "\"gemm\" is not known", "all_gather_gemm, gemm_all_scatter"}},
      {[](json& d) { d["entries"][0].erase("gather"); }, {"entry 1", "\"gather\" is missing"}},
      {[](json& d) { d["entries"][0]["gather"] = "n"; }, {"\"n\"", "rows, k"}},
      {[](json& d) { d["entries"].back()["gather"] = "k"; }, {"gathers nothing"}},
      {[](json& d) { d["entries"][2]["ranks"] = 1; }, {"entry 3", "\"ranks\" is 1", "from 2"}},
      {[](json& d) { d["entries"][2]["m"] = 0; }, {"\"m\" is 0", "from 1"}},
      {[](json& d) { d["entries"][2]["n"] = 2.5; }, {"\"n\" is 2.5", "whole number"}},
      {[](json& d) { d["entries"][2]["k"] = -8; }, {"\"k\" is -8"}},
      {[](json& d) { d["entries"][2].erase("k"); }, {"entry 3", "\"k\" is missing"}},
      {[](json& d) { d["entries"][2]["seconds"] = json::object(); }, {"a time for each pattern"}},
      {[](json& d) { d["entries"][2]["seconds"]["bulk_library"] = -1e-5; },
       {"\"bulk_library\" is -1e-05", "above 0"}},
      {[](json& d) { d["entries"][2]["seconds"]["bulk_library"] = nullptr; }, {"null"}},
      {[](json& d) { d["entries"][2]["seconds"]["fused"] = 1e-5; }, {"\"fused\" is not known"}},
      {[](json& d) { d["entries"][2]["seconds"]["automatic"] = 1e-5; }, {"\"automatic\""}},
      {[](json& d) { d["entries"].push_back(d["entries"][0]); },
       {"all_gather_gemm, rows, 4 ranks, 64 x 4096 x 8192 is there twice"}},
  };
  const json right = json::parse(to_json(sample_table()));
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    SCOPED_TRACE("mutant " + std::to_string(i));
    json wrong = right;
    mutants[i].change(wrong);
    std::vector<std::string> says = {"a file: ", "untax bench tune"};
    says.insert(says.end(), mutants[i].says.begin(), mutants[i].says.end());
    expect_error(error_of([&] { (void)parse_table(wrong.dump(), "a file"); }),
                 errc::invalid_argument, says);
  }
}

TEST(tables, no_json_is_refused) {
  for (const char* text : {"", "{", "[]", "17", "\"untax-tune\""}) {
    expect_error(error_of([&] { (void)parse_table(text, "a file"); }), errc::invalid_argument,
                 {"a file: it is no JSON object"});
  }
}

TEST(tables, files) {
  std::string name;
  {
    const untax_test::temporary_file file;
    name = file.path();
    std::ofstream(name) << to_json(sample_table());
    EXPECT_EQ(load_table(name).entries.size(), sample_table().entries.size());
  }
  expect_error(error_of([&] { (void)load_table(name); }), errc::invalid_argument,
               {name, "cannot be read"});
}

TEST(tables, the_ones_compiled_in_are_right) {
  for (const tuning_table& table : untax::built_in_tables()) {
    EXPECT_FALSE(table.entries.empty()) << table.text();
    for (const auto& entry : table.entries) {
      EXPECT_TRUE(entry.seconds.contains(untax::pattern::bulk_library))
          << table.text() << ": " << shape_text(entry.problem);
    }
  }
}

TEST(tables, bounds_follow_from_rates) {
  const untax::device_rates rates{.flops = 1e12, .memory = 1e12, .link = 1e9};
  const auto bounds = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    return rates.bounds({name, untax::gather_axis::rows, 4, m, n, k});
  };
  EXPECT_DOUBLE_EQ(bounds("all_gather_gemm", 1, 1000, 1000).compute, 2e-6) << "weights";
  EXPECT_DOUBLE_EQ(bounds("all_gather_gemm", 1000, 1000, 1000).compute, 2e-3) << "arithmetic";
  EXPECT_DOUBLE_EQ(bounds("all_gather_gemm", 1000, 8, 1000).link, 1.5e-3) << "quarters of A";
  EXPECT_DOUBLE_EQ(bounds("gemm_all_scatter", 1000, 4000, 8).link, 6e-3) << "three quarters of C";
  EXPECT_DOUBLE_EQ(bounds("gemm_all_scatter", 1000, 4000, 1000).compute, 2e-3) << "own columns";
}

}  // namespace
}  // namespace choice_test
