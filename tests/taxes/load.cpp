// Whether a machine was busy, from made-up moments and files.
#include <untax/taxes/load.hpp>

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace untax::test {
namespace {

namespace fs = std::filesystem;

machine_facts machine_of(int present, int cores) {
  machine_facts machine;
  machine.cores_present = present;
  machine.cores = cores;
  return machine;
}

/// Ten seconds in which this process used `own` seconds and all together `busy`.
std::vector<std::string> warned(const machine_facts& machine, double own, double busy, int ranks) {
  const machine_load before{.at = 5, .average = 0, .busy = 100, .own = 1};
  const machine_load after{.at = 15, .average = 9, .busy = 100 + busy, .own = 1 + own};
  return load_warnings(machine, before, after, ranks);
}

TEST(load_warnings, an_idle_machine_has_none) {
  EXPECT_TRUE(warned(machine_of(4, 4), 30, 30.5, 4).empty());
  EXPECT_TRUE(warned(machine_of(4, 4), 30, 29, 4).empty()) << "clocks differ a little";
}

TEST(load_warnings, others_that_compute_are_seen) {
  const auto warnings = warned(machine_of(4, 4), 20, 40, 4);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("other processes used 2.0 of its 4 cores"), std::string::npos)
      << warnings[0];
}

TEST(load_warnings, others_may_use_cores_outside_our_limit) {
  EXPECT_TRUE(warned(machine_of(64, 4), 20, 420, 4).empty());
  EXPECT_EQ(warned(machine_of(64, 4), 20, 640, 4).size(), 1U);
}

TEST(load_warnings, fewer_cores_than_ranks) {
  const auto warnings = warned(machine_of(2, 2), 10, 10, 4);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].rfind("2 cores for 4 ranks", 0), 0U) << warnings[0];
  EXPECT_TRUE(warned(machine_of(2, 2), 10, 10, 0).empty()) << "ranks are GPUs";
}

TEST(load_warnings, without_process_times_the_load_average_decides) {
  const machine_load busy{.at = 5, .average = 3, .busy = -1, .own = 1};
  machine_load after = busy;
  after.at = 15;
  EXPECT_EQ(load_warnings(machine_of(4, 4), busy, after, 4).size(), 1U);
  machine_load idle = busy;
  idle.average = 0.3;
  EXPECT_TRUE(load_warnings(machine_of(4, 4), idle, after, 4).empty());
  idle.average = -1;
  EXPECT_TRUE(load_warnings(machine_of(4, 4), idle, after, 4).empty()) << "nothing is known";
}

TEST(load, is_read_from_proc) {
  std::string name = (fs::temp_directory_path() / "untax-load-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path root = name;
  fs::create_directories(root / "proc");
  std::ofstream(root / "proc/loadavg") << "1.25 0.5 0.25 2/99 1234\n";
  std::ofstream(root / "proc/stat") << "cpu  100 200 300 5000 600 10 20 70 40 0\ncpu0 1 2 3\n";
  const machine_load load = read_load(root);
  EXPECT_DOUBLE_EQ(load.average, 1.25);
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(load.busy, (100 + 200 + 300 + 10 + 20 + 70) / ticks);
  EXPECT_GT(load.own, 0);
  EXPECT_GT(load.at, 0);
  fs::remove_all(root);
  const machine_load nothing = read_load(root);
  EXPECT_LT(nothing.average, 0);
  EXPECT_LT(nothing.busy, 0);
}

}  // namespace
}  // namespace untax::test
