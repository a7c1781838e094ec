#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace untax_test {

/// Fails the test unless the lines are those of a file of the repository, whose path begins at its
/// root. With UNTAX_WRITE_PLANS in the environment the file is written instead.
inline void expect_wanted_lines(std::string_view file, const std::vector<std::string>& all) {
  if (std::getenv("UNTAX_WRITE_PLANS") != nullptr) {
    std::ofstream to{std::string(file)};
    for (const std::string& line : all) to << line << '\n';
    return;
  }
  std::ifstream from{std::string(file)};
  ASSERT_TRUE(from.good()) << file << ": run this in the root of the repository";
  std::string line;
  std::size_t number = 0;
  int different = 0;
  for (; std::getline(from, line); ++number) {
    ASSERT_LT(number, all.size());
    EXPECT_EQ(all[number], line) << file << ":" << number + 1;
    if (all[number] != line && ++different == 5) GTEST_FAIL() << "and perhaps more";
  }
  EXPECT_EQ(number, all.size());
}

}  // namespace untax_test
