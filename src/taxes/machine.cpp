#include <untax/taxes/machine.hpp>

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace untax {
namespace {

using std::filesystem::path;

std::string first_line(const path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The value of "key : value" or "key: value kB" in a file of such lines; counts how often the key
// occurs.
std::string proc_field(const path& file, std::string_view key, int* occurrences = nullptr) {
  std::ifstream stream(file);
  std::string value;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string_view name = std::string_view(line).substr(0, colon);
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    if (name != key) continue;
    if (occurrences != nullptr) ++*occurrences;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (value.empty() && begin != std::string::npos) value = line.substr(begin);
  }
  return value;
}

// The leading number of `text`, unless it says that there is no limit ("max", -1, nothing).
std::optional<double> number(const std::string& text) {
  std::istringstream stream(text);
  double value = 0;
  if (!(stream >> value) || value < 0) return std::nullopt;
  return value;
}

std::size_t kilobytes(const std::string& text) {
  return static_cast<std::size_t>(number(text).value_or(0)) * 1024;
}

// Calls `visit` with the directory of this process's cgroup, then with each directory above it.
// Inside a container the directories of the host are missing; then only the top one exists.
template <class Visit>
void visit_cgroups(const path& root, const std::string& controller, Visit&& visit) {
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + controller + ",") == std::string::npos) continue;
    const path top = unified ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
    for (path below = path(line.substr(second + 1)).relative_path();; below = below.parent_path()) {
      visit(top / below);
      if (below.empty()) break;
    }
  }
}

double cpu_quota(const path& root) {
  double quota = std::numeric_limits<double>::infinity();
  visit_cgroups(root, "cpu", [&](const path& group) {
    const std::string both = first_line(group / "cpu.max");
    const std::size_t blank = std::min(both.find(' '), both.size());
    auto share = number(both.substr(0, blank));
    auto period = number(both.substr(blank));
    if (!share) {
      share = number(first_line(group / "cpu.cfs_quota_us"));
      period = number(first_line(group / "cpu.cfs_period_us"));
    }
    if (share && period && *share > 0 && *period > 0) quota = std::min(quota, *share / *period);
  });
  return quota;
}

// Bytes of cached files that a control group is charged for; the kernel reclaims them before it
// refuses memory. The old hierarchy has totals of a group and those below it.
double cached_bytes(const path& statistics) {
  double bytes = 0;
  double totals = 0;
  std::ifstream stream(statistics);
  std::string name;
  for (double value = 0; stream >> name >> value;) {
    if (name == "inactive_file" || name == "active_file") bytes += value;
    if (name == "total_inactive_file" || name == "total_active_file") totals += value;
  }
  return std::max(bytes, totals);
}

void apply_memory_limits(const path& root, machine_facts& facts) {
  visit_cgroups(root, "memory", [&](const path& group) {
    auto limit = number(first_line(group / "memory.max"));
    auto used = number(first_line(group / "memory.current"));
    if (!limit) {
      limit = number(first_line(group / "memory.limit_in_bytes"));
      used = number(first_line(group / "memory.usage_in_bytes"));
    }
    // Without a limit the old hierarchy reports one near 2^63.
    if (!limit || *limit >= static_cast<double>(facts.memory_bytes)) return;
    const double kept = used.value_or(0) - cached_bytes(group / "memory.stat");
    const double left = std::max(0.0, *limit - std::max(0.0, kept));
    facts.memory_bytes = static_cast<std::size_t>(*limit);
    facts.memory_available = std::min(facts.memory_available, static_cast<std::size_t>(left));
  });
}

int allowed_cores(int present) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : present;
}

int count_numa_nodes(const path& root) {
  int nodes = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(root / "sys/devices/system/node", ignored)) {
    const std::string name = entry.path().filename().string();
    const bool numbered =
        name.size() > 4 && name.find_first_not_of("0123456789", 4) == std::string::npos;
    if (name.starts_with("node") && numbered) ++nodes;
  }
  return std::max(nodes, 1);
}

}  // namespace

machine_facts read_machine(const path& root) {
  machine_facts facts;
  utsname names{};
  if (uname(&names) == 0) {
    facts.system = fmt::format("{} {} on {}", names.sysname, names.release, names.machine);
  }
  facts.cpu = proc_field(root / "proc/cpuinfo", "model name");
  if (facts.cpu.empty()) facts.cpu = fmt::format("{} processor", names.machine);
  (void)proc_field(root / "proc/cpuinfo", "processor", &facts.cores_present);
  facts.cores_present = std::max(facts.cores_present, 1);
  facts.cores = std::min(facts.cores_present, allowed_cores(facts.cores_present));
  const double quota = cpu_quota(root);
  // Half a core of quota still runs threads, so at least one core is reported.
  if (quota < facts.cores) facts.cores = std::max(1, static_cast<int>(quota));
  facts.numa_nodes = count_numa_nodes(root);
  facts.memory_bytes = kilobytes(proc_field(root / "proc/meminfo", "MemTotal"));
  facts.memory_available = kilobytes(proc_field(root / "proc/meminfo", "MemAvailable"));
  apply_memory_limits(root, facts);
  return facts;
}

}  // namespace untax
