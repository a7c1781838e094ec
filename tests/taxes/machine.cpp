#include <untax/taxes/machine.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "bench/suites/own_machine.hpp"

namespace untax::test {
namespace {

namespace fs = std::filesystem;

/// A directory with files like those of /proc and /sys.
class machine : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "untax-machine-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    write(
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Fast One @ 3 GHz\n\nprocessor\t: 1\nmodel name\t: Other\n");
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(machine, without_cgroups) {
  const machine_facts facts = read_machine(root_);
  EXPECT_EQ(facts.cpu, "Fast One @ 3 GHz");
  EXPECT_EQ(facts.cores_present, 2);
  EXPECT_GE(facts.cores, 1);
  EXPECT_LE(facts.cores, 2);
  EXPECT_EQ(facts.numa_nodes, 1);
  EXPECT_EQ(facts.memory_bytes, 1000U * 1024);
  EXPECT_EQ(facts.memory_available, 600U * 1024);
  EXPECT_EQ(facts.system.rfind("Linux ", 0), 0U);
}

TEST_F(machine, limits_of_cgroups) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/job/memory.max", "409600\n");
  write("sys/fs/cgroup/job/memory.current", "102400\n");
  const machine_facts facts = read_machine(root_);
  EXPECT_EQ(facts.cores, 1);
  EXPECT_EQ(facts.memory_bytes, 409600U);
  EXPECT_EQ(facts.memory_available, 307200U);
}

TEST_F(machine, cached_files_of_a_cgroup_count_as_available) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "409600\n");
  write("sys/fs/cgroup/job/memory.current", "302400\n");
  write("sys/fs/cgroup/job/memory.stat",
        "anon 102400\nfile 200000\ninactive_file 150000\nactive_file 50000\nshmem 0\n");
  EXPECT_EQ(read_machine(root_).memory_available, 307200U);
}

TEST_F(machine, cached_files_of_an_older_cgroup_count_as_available) {
  write("proc/self/cgroup", "4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "409600\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "302400\n");
  write("sys/fs/cgroup/memory/job/memory.stat",
        "cache 200000\ninactive_file 0\nactive_file 1000\ntotal_inactive_file 150000\n"
        "total_active_file 50000\n");
  EXPECT_EQ(read_machine(root_).memory_available, 307200U);
}

TEST_F(machine, limits_of_older_cgroups) {
  write("proc/self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const machine_facts facts = read_machine(root_);
  EXPECT_EQ(facts.cores, 1);
  EXPECT_EQ(facts.memory_bytes, 1000U * 1024);
}

TEST_F(machine, no_limit) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/devices/system/node/node0/x", "");
  write("sys/devices/system/node/node1/x", "");
  write("sys/devices/system/node/possible", "");
  const machine_facts facts = read_machine(root_);
  EXPECT_EQ(facts.memory_bytes, 1000U * 1024);
  EXPECT_EQ(facts.numa_nodes, 2);
}

TEST_F(machine, nothing_to_read) {
  const machine_facts facts = read_machine(root_ / "nowhere");
  EXPECT_FALSE(facts.cpu.empty());
  EXPECT_EQ(facts.cores, 1);
  EXPECT_EQ(facts.memory_bytes, 0U);
}

TEST(this_machine, has_memory_and_cores) {
  const machine_facts facts = read_machine();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, std::size_t{1} << 20);
  EXPECT_LE(facts.memory_available, facts.memory_bytes);
}

nlohmann::json result(const char* name) {
  return nlohmann::json::parse(
      std::ifstream(std::string(UNTAX_SOURCE_DIR "/bench/results/h200-2-2026-11-") + name));
}
spread spread_in(const nlohmann::json& figure) {
  const auto& s = figure.at("seconds");
  return {s.at("median"), s.at("p10"), s.at("p90")};
}

/// Measurements of two H200 give the numbers of their description, some of which were rounded or
/// taken from other runs; numbers of other quantities are further off.
TEST(own_machine, numbers_are_those_of_the_reports) {
  bench::rma_report verbs;
  const std::vector<std::string> tables = {"blocks", "sizes", "pairs", "all", "latency"};
  const nlohmann::json of_verbs = result("22-rma.json");
  for (const auto& list : of_verbs) {
    if (!list.is_array()) continue;
    for (const auto& f : list) {
      bench::rma_figure figure;
      const auto table = std::find(tables.begin(), tables.end(), f.at("table").get<std::string>());
      figure.table = static_cast<bench::rma_table>(table - tables.begin());
      figure.what = f.at("what");
      figure.method = f.at("method");
      figure.blocks = f.at("blocks");
      figure.bytes = f.at("bytes");
      figure.time = spread_in(f);
      verbs.figures.push_back(figure);
    }
  }
  bench::collective_report collectives;
  const nlohmann::json of_collectives = result("28-collectives.json");
  for (const auto& row : of_collectives.at("collectives")) {
    bench::collective_row& figure_row = collectives.rows.emplace_back();
    for (const bench::collective_kind kind : bench::all_collective_kinds()) {
      if (row.at("collective") == bench::name_of(kind)) figure_row.kind = kind;
    }
    figure_row.bytes = row.at("bytes");
    for (const auto& f : row.at("figures")) {
      if (!f.contains("seconds")) continue;
      const std::string way = f.at("by");
      figure_row.figures.push_back({way, way == "NCCL", "", spread_in(f), ""});
    }
  }
  const timing::machine known = timing::load_machine(UNTAX_SOURCE_DIR "/machines/h200-8.json");
  timing::machine m;
  take_numbers(m, verbs);
  take_numbers(m, collectives);
  EXPECT_GE(m.sources.size(), 9U);
  for (const timing::number_kind& kind : timing::number_kinds) {
    if (!m.sources.contains(kind.key) || kind.key == "jitter") continue;
    const double wanted = known.numbers.*kind.value;
    EXPECT_NEAR(m.numbers.*kind.value, wanted, 0.25 * wanted) << kind.key;
  }
}

}  // namespace
}  // namespace untax::test
