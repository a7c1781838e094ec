#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace untax_test {

/// About so many lines of a long text are kept word for word.
inline constexpr std::size_t kept_lines = 40;

/// A text as it is kept: it is cut into blocks of equally many lines, and each has the first line
/// of the block after the number of its lines and a hash (FNV-1a) of them all.
inline std::vector<std::string> digest_of(const std::vector<std::string>& lines) {
  const std::size_t block = (lines.size() + kept_lines - 1) / kept_lines;
  std::vector<std::string> digest;
  for (std::size_t begin = 0; begin < lines.size(); begin += block) {
    const std::size_t end = std::min(begin + block, lines.size());
    std::uint64_t hash = 0xCBF29CE484222325U;
    const auto take = [&](char letter) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    };
    for (std::size_t i = begin; i < end; ++i) {
      std::ranges::for_each(lines[i], take);
      take('\n');
    }
    digest.push_back(fmt::format("{} {:016x} {}", end - begin, hash, lines[begin]));
  }
  return digest;
}

/// Fails the test unless the digest of the lines is that in a file of the repository, whose path
/// begins at its root. Then all lines are written to a file that the failure names: those of
/// another commit, to compare with, are written there if its test is run with UNTAX_WRITE_PLANS in
/// the environment. That also writes the digest to the repository instead of comparing it.
inline void expect_wanted_lines(std::string_view file, const std::vector<std::string>& lines) {
  const auto write = [](const std::string& path, const std::vector<std::string>& written) {
    std::ofstream to{path};
    for (const std::string& line : written) to << line << '\n';
  };
  const std::vector<std::string> digest = digest_of(lines);
  const auto write_whole = [&] {
    std::string name(file.substr(file.find('/') + 1));
    std::ranges::replace(name, '/', '-');
    const std::string path = testing::TempDir() + "untax-" + name;
    write(path, lines);
    return path;
  };
  if (std::getenv("UNTAX_WRITE_PLANS") != nullptr) {
    write(std::string(file), digest);
    (void)write_whole();
    return;
  }
  std::ifstream from{std::string(file)};
  ASSERT_TRUE(from.good()) << file << ": run this in the root of the repository";
  std::vector<std::string> wanted;
  for (std::string line; std::getline(from, line);) wanted.push_back(line);
  if (wanted == digest) return;
  const std::string path = write_whole();
  for (std::size_t i = 0; i < std::min(wanted.size(), digest.size()); ++i)
    EXPECT_EQ(digest[i], wanted[i]) << file << ":" << i + 1 << "; all lines are in " << path;
  EXPECT_EQ(digest.size(), wanted.size()) << file << "; all lines are in " << path;
}

}  // namespace untax_test
