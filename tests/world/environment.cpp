#include <limits>
#include <map>
#include <set>

#include <untax/core/environment.hpp>

#include "support.hpp"

namespace {

using untax::environment;
using untax::errc;
using untax::parse_bytes;
using world_test::error_of;
using world_test::expect_error;
namespace variable = untax::variable;

TEST(environment, parses_sizes) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("64K"), 65536U);
  EXPECT_EQ(parse_bytes("3m"), 3U << 20U);
  EXPECT_EQ(parse_bytes("2GiB"), std::size_t{2} << 30U);
  EXPECT_EQ(parse_bytes("2GB"), std::size_t{2} << 30U);
  for (const char* wrong : {"", "K", "-1", "1.5G", "1T", "1KK", "1 K", "0x10",
                            "99999999999999999999", "99999999999G"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(environment, formats_sizes_for_people) {
  EXPECT_EQ(untax::format_bytes(512), "512 bytes");
  EXPECT_EQ(untax::format_bytes(65536), "64 KiB");
  EXPECT_EQ(untax::format_bytes(std::size_t{3} << 29U), "1.5 GiB");
}

TEST(environment, names_variable_and_value_of_an_error) {
  const environment env({{"UNTAX_HEAP_BYTES", "lots"},
                         {"UNTAX_WAIT_LIMIT_MS", "-5"},
                         {"UNTAX_RANK", "3x"},
                         {"UNTAX_HEAP_GUARDS", "2"}});
  expect_error(error_of([&] { (void)env.bytes_or_fallback(variable::heap_bytes); }),
               errc::invalid_argument, {"UNTAX_HEAP_BYTES", "\"lots\"", "512M"});
  expect_error(error_of([&] { (void)env.number_or_fallback(variable::wait_limit, 0, 1000); }),
               errc::invalid_argument, {"UNTAX_WAIT_LIMIT_MS", "\"-5\"", "from 0 to 1000"});
  expect_error(error_of([&] { (void)env.number(variable::rank, 0, 7); }), errc::invalid_argument,
               {"UNTAX_RANK", "\"3x\"", "from 0 to 7"});
  expect_error(error_of([&] { (void)env.number(variable::heap_guards, 0, 1); }),
               errc::invalid_argument, {"UNTAX_HEAP_GUARDS", "\"2\""});
}

TEST(environment, falls_back_to_the_documented_defaults) {
  const environment nothing(std::map<std::string, std::string>{});
  EXPECT_EQ(nothing.bytes_or_fallback(variable::heap_bytes), std::size_t{1} << 30U);
  EXPECT_EQ(nothing.number_or_fallback(variable::wait_limit, 0, 1 << 30), 20000);
  EXPECT_EQ(nothing.text(variable::rank), std::nullopt);
  const environment empty(std::map<std::string, std::string>{{"UNTAX_RANK", ""}});
  EXPECT_FALSE(empty.has(variable::rank));
}

TEST(environment, lists_every_variable_once_with_its_meaning) {
  std::set<std::string> names;
  for (const auto* v : untax::environment_variables()) {
    EXPECT_TRUE(names.insert(v->name).second) << v->name;
    EXPECT_FALSE(std::string(v->meaning).empty()) << v->name;
  }
  EXPECT_TRUE(names.contains("UNTAX_HEAP_BYTES"));
  EXPECT_TRUE(names.contains("SLURM_PROCID"));
}

TEST(errors, have_a_word_for_each_code) {
  std::set<std::string> words;
  for (int code = 0; code <= static_cast<int>(errc::internal); ++code) {
    words.emplace(untax::name_of(static_cast<errc>(code)));
  }
  EXPECT_EQ(words.size(), 9U);
  EXPECT_TRUE(words.contains("peer_lost"));
  EXPECT_FALSE(words.contains("unknown"));
}

}  // namespace
