#include <untax/taxes/load.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>

namespace untax {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and
/// guest times, which are part of the first two. -1 if it cannot be read.
double busy_seconds(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string name;
  double ticks[8] = {};
  if (!(stream >> name) || name != "cpu") return -1;
  for (double& tick : ticks) {
    if (!(stream >> tick)) return -1;
  }
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// The processors that other processes used between two moments; negative if unknown.
double used_by_others(const machine_load& before, const machine_load& after) {
  const double seconds = after.at - before.at;
  // The counters are in hundredths of a second, too coarse for shorter times.
  constexpr double least_seconds = 0.2;
  if (before.busy < 0 || after.busy <= before.busy || !(seconds >= least_seconds)) return -1;
  return std::max(0.0, (after.busy - before.busy) - (after.own - before.own)) / seconds;
}

}  // namespace

machine_load read_load(const std::filesystem::path& root) {
  machine_load load;
  load.at =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::ifstream average(root / "proc/loadavg");
  if (!(average >> load.average)) load.average = -1;
  load.busy = busy_seconds(root / "proc/stat");
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0)
    load.own = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  return load;
}

std::vector<std::string> load_warnings(const machine_facts& machine, const machine_load& before,
                                       const machine_load& after, int ranks) {
  std::vector<std::string> warnings;
  if (ranks > machine.cores) {
    warnings.push_back(
        fmt::format("{} cores for {} ranks: ranks take turns, so what they wait for each other is "
                    "not what ranks with cores of their own wait.",
                    machine.cores, ranks));
  }
  // Other processes may use the processors that this one may not use.
  const double spare = machine.cores_present - machine.cores;
  const double bearable = std::max(0.1, 0.05 * machine.cores) + spare;
  const double others = used_by_others(before, after);
  if (others > bearable) {
    warnings.push_back(
        fmt::format("the machine was busy: other processes used {:.1f} of its {} cores meanwhile, "
                    "so times are too long, and differ by more than chance. Measure again when it "
                    "is idle.",
                    others, machine.cores_present));
  } else if (others < 0 && before.average > 0.5 * machine.cores + spare) {
    warnings.push_back(fmt::format(
        "the machine may have been busy: its load was {:.1f} when this began, with {} cores.",
        before.average, machine.cores_present));
  }
  return warnings;
}

}  // namespace untax
