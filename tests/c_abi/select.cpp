// Selectors through the ABI: trained, written, read back, asked.
#include <cstdint>
#include <string>

#include "support.hpp"

namespace {

using namespace c_test;

constexpr const char* schema = R"({"known": ["n"], "gathered": ["odd"], "gathering": "1e-3",
  "candidates": [{"name": "a", "time": "t_a"}, {"name": "b", "time": "t_b"}]})";

/// Small ones go by a; of large ones those that are odd go by b, which has to be looked at.
std::string table() {
  std::string csv = "n,odd,t_a,t_b\n";
  for (int i = 1; i <= 60; ++i) {
    const bool odd = i % 2 == 1;
    const bool by_a = i <= 20 || !odd;
    csv += std::to_string(i) + "," + (odd ? "1" : "0") + (by_a ? ",1,9\n" : ",9,1\n");
  }
  return csv;
}

struct looked {
  double odd = 0;
  int times = 0;
  int status = 0;
};

int look(void* context, double* features) {
  auto& l = *static_cast<looked*>(context);
  ++l.times;
  features[0] = l.odd;
  return l.status;
}

std::string chosen(const untax_selector* s, double n, looked& l) {
  std::int32_t candidate = -1;
  EXPECT_OK(untax_selector_choose(s, &n, 1, 1, look, &l, &candidate, nullptr));
  return untax_selector_candidate(s, candidate);
}

TEST(c_select, trained_and_reloaded_selectors_choose_alike) {
  untax_selector* trained = nullptr;
  ASSERT_EQ(untax_selector_train(schema, table().c_str(), 1, &trained), untax_ok) << last_text();
  untax_selector* read = nullptr;
  ASSERT_EQ(untax_selector_read(untax_selector_json(trained), &read), untax_ok) << last_text();
  EXPECT_STREQ(untax_selector_text(read), untax_selector_text(trained));
  for (const untax_selector* s : {trained, read}) {
    looked l{.odd = 1};
    EXPECT_EQ(chosen(s, 50, l), "b");
    EXPECT_EQ(l.times, 1);
    l.odd = 0;
    EXPECT_EQ(chosen(s, 50, l), "a");
    std::int32_t gathered = -1;
    EXPECT_STREQ(untax_selector_feature(s, 0, &gathered), "n");
    EXPECT_EQ(gathered, 0);
    EXPECT_STREQ(untax_selector_feature(s, 1, &gathered), "odd");
    EXPECT_EQ(gathered, 1);
    EXPECT_EQ(untax_selector_feature(s, 2, nullptr), nullptr);
    EXPECT_EQ(untax_selector_feature(s, -1, nullptr), nullptr);
    EXPECT_EQ(untax_selector_candidate(s, 2), nullptr);
    EXPECT_EQ(untax_selector_candidate(s, -1), nullptr);
  }
  EXPECT_OK(untax_selector_destroy(trained));
  EXPECT_OK(untax_selector_destroy(read));
}

TEST(c_select, impossible_requests_are_refused) {
  untax_selector* s = nullptr;
  expect_failure(untax_selector_train("{", table().c_str(), 1, &s), untax_invalid_argument,
                 {"schema"});
  expect_failure(untax_selector_train(schema, "n,odd,t_a\n1,1,1\n", 1, &s), untax_invalid_argument,
                 {"table", "t_b"});
  expect_failure(untax_selector_train(schema, "[3]", 1, &s), untax_invalid_argument, {"table"});
  expect_failure(untax_selector_read("[]", &s), untax_invalid_argument, {"selector"});
  expect_failure(untax_selector_read(nullptr, &s), untax_invalid_argument, {"json is NULL"});
  ASSERT_EQ(untax_selector_train(schema, table().c_str(), 1, &s), untax_ok) << last_text();
  const double known[] = {50, 2};
  std::int32_t candidate = -1;
  looked l{.status = 1};
  expect_failure(untax_selector_choose(s, known, 2, 1, look, &l, &candidate, nullptr),
                 untax_invalid_argument, {"2 known features", "there are 1: n"});
  expect_failure(untax_selector_choose(s, known, 1, 0, look, &l, &candidate, nullptr),
                 untax_invalid_argument, {"iterations is 0"});
  expect_failure(untax_selector_choose(s, nullptr, 1, 1, look, &l, &candidate, nullptr),
                 untax_invalid_argument, {"known is NULL"});
  expect_failure(untax_selector_choose(s, known, 1, 1, look, &l, &candidate, nullptr),
                 untax_aborted, {"gathering"});
  EXPECT_EQ(candidate, -1);
  std::int32_t gathered = -1;
  EXPECT_OK(untax_selector_choose(s, known, 1, 1, nullptr, nullptr, &candidate, &gathered));
  EXPECT_EQ(gathered, 0);
  EXPECT_GE(candidate, 0);
  EXPECT_OK(untax_selector_destroy(s));
  EXPECT_OK(untax_selector_destroy(nullptr));
}

}  // namespace
