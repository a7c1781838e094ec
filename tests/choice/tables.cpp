// The format of tables: what is written is read, and what is wrong is refused with its place.
#include "ops/choice/table.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ops/choice/measured_on.hpp"
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

TEST(tables, survive_writing_and_reading) {
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

TEST(tables, each_entry_is_written_on_one_line) {
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

TEST(tables, damaged_files_are_refused_with_the_place) {
  const std::vector<mutant> mutants = {
      {[](json& d) { d["format"] = "untax-taxes"; }, {"untax-taxes", "\"untax-tune\" 1 or 2"}},
      {[](json& d) { d["format_version"] = 3; }, {"format", "3"}},
      {[](json& d) { d.erase("format"); }, {"\"format\" is missing"}},
      {[](json& d) { d.erase("device"); }, {"\"device\" is missing"}},
      {[](json& d) { d["device"] = 7; }, {"\"device\" is 7", "a text"}},
      {[](json& d) { d["dtype"] = "fp32"; }, {"dtype \"fp32\" is not known", "bf16, fp16"}},
      {[](json& d) { d.erase("kernels"); }, {"\"kernels\" is missing"}},
      {[](json& d) { d["kernels"] = ""; }, {"\"kernels\" is \"\"", "16 digits"}},
      {[](json& d) { d["kernels"] = "0123456789abcdeF"; }, {"0123456789abcdeF", "a to f"}},
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
      {[](json& d) { d["entries"][0]["partials"] = "fp32"; }, {"has no partial results"}},
      {[](json& d) {
         d["entries"][0].erase("gather");
         d["entries"][0]["operator"] = "gemm_all_reduce";
       },
       {"entry 1", "\"partials\" is missing"}},
      {[](json& d) {
         d["entries"][0].erase("gather");
         d["entries"][0]["operator"] = "gemm_all_reduce";
         d["entries"][0]["partials"] = "fp16";
       },
       {"partials \"fp16\" is not known", "bf16, fp32"}},
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
       {"all_gather_gemm, rows, 4 ranks, 64 x 4096 x 8192 occurs twice"}},
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

/// Tables of version 1 have no hash of kernels, so they are of other ones.
TEST(tables, of_version_1_count_as_those_of_other_kernels) {
  json old = json::parse(to_json(sample_table()));
  old["format_version"] = 1;
  old.erase("kernels");
  const tuning_table read = parse_table(old.dump(), "a file");
  EXPECT_EQ(read.entries.size(), sample_table().entries.size());
  EXPECT_NE(read.kernels, untax::kernel_sources());
}

TEST(tables, name_the_kernels_of_this_build_by_a_hash) {
  EXPECT_EQ(untax::kernel_sources().size(), 16U);
  tuning_table table = sample_table();
  table.kernels = untax::kernel_sources();
  EXPECT_EQ(parse_table(to_json(table), "a file").kernels, table.kernels);
}

/// Lines of same_kernels.txt have the hash of sources and that of a table.
TEST(tables, recorded_hashes_of_identical_kernels_are_those_of_tables) {
  std::ifstream record(UNTAX_SOURCE_DIR "/ops/choice/same_kernels.txt");
  ASSERT_TRUE(record);
  for (std::string line; std::getline(record, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string sources, measured, more;
    words >> sources >> measured;
    EXPECT_FALSE(words >> more) << line;
    EXPECT_EQ(sources.size(), 16U) << line;
    EXPECT_TRUE(std::ranges::any_of(untax::built_in_tables(), [&](const tuning_table& table) {
      return table.kernels == measured;
    })) << line;
  }
}

TEST(tables, entries_of_sums_keep_the_type_of_partial_results) {
  tuning_table table = empty_table();
  for (const untax::dtype type : {untax::dtype::bf16, untax::dtype::f32}) {
    const tuned_problem p{
        .operator_name = "gemm_reduce_scatter", .m = 64, .n = 4096, .k = 8192, .partials = type};
    table.entries.push_back({p, {{untax::pattern::bulk_library, 1e-5}}});
  }
  const tuning_table read = parse_table(to_json(table), "a file");
  ASSERT_EQ(read.entries.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(read.entries[i].problem, table.entries[i].problem);
  EXPECT_EQ(family_text(read.entries[1].problem), "gemm_reduce_scatter, fp32 partials, 2 ranks");
}

TEST(tables, text_that_is_not_json_is_refused) {
  for (const char* text : {"[]", "17", "\"untax-tune\""}) {
    expect_error(error_of([&] { (void)parse_table(text, "a file"); }), errc::invalid_argument,
                 {"a file: it is not a JSON object"});
  }
  for (const char* text : {"", "{"}) {
    expect_error(error_of([&] { (void)parse_table(text, "a file"); }), errc::invalid_argument,
                 {"a file:1:", "this is not JSON; `untax bench tune` writes such files"});
  }
}

TEST(tables, are_read_from_files) {
  std::string name;
  {
    const untax_test::temporary_file file;
    name = file.path();
    std::ofstream(name) << to_json(sample_table());
    EXPECT_EQ(load_table(name).entries.size(), sample_table().entries.size());
  }
  expect_error(error_of([&] { (void)load_table(name); }), errc::invalid_argument,
               {name, "cannot be opened"});
}

TEST(tables, built_in_tables_are_right) {
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
  EXPECT_DOUBLE_EQ(bounds("gemm_reduce_scatter", 1000, 1000, 4000).compute, 2e-3) << "own k";
  EXPECT_DOUBLE_EQ(bounds("gemm_reduce_scatter", 1000, 1000, 8).link, 1.5e-3) << "of others";
  EXPECT_DOUBLE_EQ(bounds("gemm_all_reduce", 1000, 1000, 8).link, 3e-3) << "and the sum";
  tuned_problem wide{.operator_name = "gemm_all_reduce", .ranks = 4, .m = 1000, .n = 1000, .k = 8};
  wide.partials = untax::dtype::f32;
  EXPECT_DOUBLE_EQ(rates.bounds(wide).link, 4.5e-3);
}

}  // namespace
}  // namespace choice_test
