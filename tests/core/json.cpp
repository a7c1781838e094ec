// The reader of JSON documents, and each reader of a document that goes through it.
#include "src/core/json.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/locality/device.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/schema.hpp>
#include <untax/select/table.hpp>
#include <untax/taxes/model_config.hpp>
#include <untax/taxes/report.hpp>
#include <untax/trace/json.hpp>

#include "engines/timing/machine.hpp"
#include "ops/choice/table.hpp"
#include "ops/timing/calibration.hpp"
#include "ops/timing/figures.hpp"
#include "ops/timing/judgement.hpp"
#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

std::string text_of(const std::string& json, const json_rules& rules = {}) {
  return parse_json(json, "d.json", rules).dump();
}
std::string refusal(const std::string& json, const json_rules& rules = {}) {
  const error e = error_of([&] { (void)parse_json(json, "d.json", rules); });
  EXPECT_EQ(e.code(), errc::invalid_argument);
  return e.what();
}
std::string lists(int levels) {
  const auto count = static_cast<std::size_t>(levels);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(json, valid_documents_are_read) {
  EXPECT_EQ(text_of(R"({"a": [1, -2.5e3, "]\"[{", null, true]})"),
            R"({"a":[1,-2500.0,"]\"[{",null,true]})");
  EXPECT_EQ(text_of("\xef\xbb\xbf[1]"), "[1]");
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(R"({"b":1,"a":2})", "d.json").dump(),
            R"({"b":1,"a":2})");
}

TEST(json, invalid_documents_are_refused_with_the_place) {
  EXPECT_EQ(refusal("[1,\n 2,,3]"), "d.json:2:4: this is not JSON");
  EXPECT_EQ(refusal("{", {.advice = "do that"}), "d.json:1:2: this is not JSON; do that");
  EXPECT_EQ(refusal("\xff\xfe[\0]\0"), "d.json: is UTF-16; save it as UTF-8");
  for (const char* wrong :
       {"", "[", "\"", "\"\\", "[1]]", "-", "-inf", "nan", "1e", "1e999x", "\xff"})
    EXPECT_NE(refusal(wrong).find("this is not JSON"), std::string::npos) << wrong;
}

TEST(json, too_deep_nesting_is_refused_before_parsing) {
  EXPECT_EQ(text_of(lists(most_json_levels)), lists(most_json_levels));
  EXPECT_EQ(refusal("\n" + lists(most_json_levels + 1)),
            "d.json:2:101: lists and objects are nested deeper than 100 levels");
  EXPECT_NE(refusal(lists(1'000'000)).find("nested deeper"), std::string::npos);
  EXPECT_EQ(text_of("[\"" + std::string(200, '[') + "\"]"), "[\"" + std::string(200, '[') + "\"]");
}

TEST(json, too_long_documents_are_refused) {
  EXPECT_EQ(text_of("[10]", {.bytes = 4}), "[10]");
  EXPECT_EQ(refusal("[100]", {.bytes = 4}), "d.json: has 5 bytes; such a document has at most 4");
}

TEST(json, non_finite_numbers_are_accepted_only_by_option) {
  EXPECT_EQ(refusal("[1,\n NaN]"), "d.json:2:2: NaN is not finite; numbers of JSON are");
  EXPECT_EQ(refusal("[1 2, NaN]"), "d.json:1:4: this is not JSON");
  EXPECT_EQ(refusal("[-1e400]"), "d.json:1:2: -1e400 is not finite; numbers of JSON are");
  const nlohmann::json result = parse_json(
      R"({"a": [NaN, Infinity, -Infinity, 1e400, -1e999, 1e300, "NaN"], "b": {"c": Infinity}})",
      "d.json", {.non_finite = true});
  EXPECT_TRUE(std::isnan(result["a"][0].get<double>()));
  for (const auto& [place, value] :
       {std::pair{1, INFINITY}, {2, -INFINITY}, {3, INFINITY}, {4, -INFINITY}})
    EXPECT_EQ(result["a"][static_cast<std::size_t>(place)].get<double>(), value) << place;
  EXPECT_EQ(result["a"][5], 1e300);
  EXPECT_EQ(result["a"][6], "NaN");
  EXPECT_EQ(shown(result["b"]["c"]), "Infinity");
  for (const char* wrong : {"[infinity]", "[+Infinity]", "[-NaN]", "[Infinity Infinity]", "[1NaN]"})
    EXPECT_NE(refusal(wrong, {.non_finite = true}).find("this is not JSON"), std::string::npos)
        << wrong;
}

TEST(json, control_characters_are_accepted_only_by_option) {
  EXPECT_EQ(refusal(R"({"name": "a\u001b[31m"})"),
            R"(d.json: "a\u001b[31m" contains the control character U+001B)");
  EXPECT_NE(refusal(R"([{"\u0000": 1}])").find("U+0000"), std::string::npos);
  EXPECT_NE(refusal(R"(["\u009b"])").find("U+009B"), std::string::npos);
  EXPECT_EQ(text_of(R"(["a\tb\n", "é"])"), R"(["a\tb\n","é"])");
  EXPECT_EQ(text_of(R"(["\u001b"])", {.control_characters = true}), R"(["\u001b"])");
}

/// A reader of documents, by its name.
using document_reader = std::pair<const char*, std::function<void(const std::string&)>>;

void from_file(const std::string& text, const std::function<void(const std::string&)>& read) {
  const untax_test::temporary_file file;
  std::FILE* out = std::fopen(file.path().c_str(), "wb");
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
  read(file.path());
}

const std::vector<document_reader>& readers() {
  static const std::vector<document_reader> known = {
      {"machine", [](const auto& t) { (void)timing::parse_machine(t, "d.json"); }},
      {"device", [](const auto& t) { (void)locality::read_device(t, "d.json"); }},
      {"schema", [](const auto& t) { (void)select::read_schema(t, "d.json"); }},
      {"selector", [](const auto& t) { (void)select::read_selector(t, "d.json"); }},
      {"records", [](const auto& t) { (void)select::read_json(t, "d.json", {}); }},
      {"tuning table", [](const auto& t) { (void)parse_table(t, "d.json"); }},
      {"calibration", [](const auto& t) { (void)parse_calibration(t, "d.json"); }},
      {"judgement", [](const auto& t) { from_file(t, [](auto& p) { (void)load_judgement(p); }); }},
      {"measurements",
       [](const auto& t) {
         from_file(t, [](auto& p) { (void)read_measurements({p}, "", 0, 8); });
       }},
      {"config", [](const auto& t) { (void)parse_model(t, "d.json"); }},
      {"report", [](const auto& t) { (void)from_json(t); }},
      {"trace", [](const auto& t) { (void)trace_from_json(t); }},
  };
  return known;
}

TEST(readers_of_json, refuse_documents_that_are_nested_too_deeply) {
  constexpr int levels = 100'000;
  for (const auto& [name, read] : readers()) {
    SCOPED_TRACE(name);
    for (const std::string& text : {"{\"format\": " + lists(levels) + "}", lists(levels)}) {
      const error e = error_of([&, &read = read] { read(text); });
      expect_error(e, errc::invalid_argument, {"nested deeper than 100 levels"});
    }
  }
}

TEST(readers_of_json, name_the_place_of_invalid_json) {
  for (const auto& [name, read] : readers()) {
    SCOPED_TRACE(name);
    const error e = error_of([&, &read = read] { read("{\"a\": 1,\n]"); });
    expect_error(e, errc::invalid_argument, {":2:1: this is not JSON"});
  }
}

}  // namespace
}  // namespace untax
