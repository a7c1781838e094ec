// All operators can be reached from C, and so from Python.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <untax/untax.h>

#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"

namespace {

TEST(c_coverage, the_abi_has_every_operator) {
  std::set<std::string> exported;
  std::ifstream list("tests/c_abi/exports.txt");
  for (std::string line; std::getline(list, line);) exported.insert(line);
  // Some are in the registries, and all have a folder.
  std::set<std::string> known;
  for (const auto& entry : untax::operators()) known.insert(entry.name);
  for (const auto& entry : untax::collectives()) known.insert(entry.name);
  for (const auto& folder : std::filesystem::directory_iterator("ops")) {
    const std::string name = folder.path().filename().string();
    if (name.front() != '_' && std::filesystem::exists(folder.path() / "operator.cpp"))
      known.insert(name);
  }
  EXPECT_TRUE(known.contains("flash_attention"));
  std::set<std::string> named;
  for (std::int32_t i = 0; untax_operator_name(i) != nullptr; ++i)
    named.insert(untax_operator_name(i));
  EXPECT_EQ(named, known);
  // All are planned and run by name; those that have functions of their own have both.
  for (const std::string& name : known) {
    EXPECT_EQ(exported.contains("untax_" + name + "_plan"),
              exported.contains("untax_" + name + "_run"))
        << name;
  }
  EXPECT_EQ(untax_operator_name(-1), nullptr);
}

}  // namespace
