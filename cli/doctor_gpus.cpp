#include <sys/resource.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/environment.hpp>
#include <untax/flow/control_block.hpp>
#include <untax/world/devices.hpp>

#include "doctor.hpp"
#include "engines/bulk/communicator.hpp"

namespace untax::cli {
namespace {

// Bytes per second and seconds; a healthy NVLink of this generation is far better.
constexpr double slow_link = 200e9;
constexpr double slow_signal = 5e-6;

std::string pair_name(std::size_t from, std::size_t to) { return fmt::format("{}-{}", from, to); }

/// Calls `f(from, to, facts)` for each ordered pair of different GPUs.
template <class F>
void each_pair(const device_survey& survey, const F& f) {
  for (std::size_t from = 0; from < survey.peers.size(); ++from) {
    for (std::size_t to = 0; to < survey.peers.size(); ++to) {
      if (from != to) f(from, to, survey.peers[from][to]);
    }
  }
}

/// The pairs for which `wrong` holds: a few by name, and the number of the others.
template <class Predicate>
std::string pairs_where(const device_survey& survey, const Predicate& wrong) {
  constexpr std::size_t named = 6;
  std::vector<std::string> names;
  each_pair(survey, [&](std::size_t from, std::size_t to, const peer_facts& p) {
    if (wrong(p)) names.push_back(pair_name(from, to));
  });
  const std::size_t count = names.size();
  names.resize(std::min(count, named));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > named ? fmt::format(" and {} others", count - named) : "");
}

std::string one_line(const device_facts& d) {
  std::string text =
      fmt::format("{} (sm_{}{}, {} SMs, {}, L2 {}", d.name, d.major, d.minor, d.multiprocessors,
                  format_bytes(d.memory_bytes), format_bytes(d.l2_bytes));
  if (d.links > 0) text += fmt::format(", {} NVLinks", d.links);
  return text + ")";
}

diagnosis which(const device_survey& survey) {
  std::map<std::string, int> kinds;
  for (const device_facts& d : survey.devices) ++kinds[one_line(d)];
  std::vector<std::string> texts;
  for (const auto& [text, count] : kinds) texts.push_back(fmt::format("{} x {}", count, text));
  return {"GPUs", mood::good, fmt::format("{}", fmt::join(texts, "; "))};
}

diagnosis software(const device_survey& survey) {
  return {"CUDA", mood::good,
          fmt::format("driver {}; {} in this program; {}", survey.driver, survey.runtime,
                      bulk::nccl().text)};
}

diagnosis multicast(const device_survey& survey) {
  const bool present = std::any_of(survey.devices.begin(), survey.devices.end(),
                                   [](const device_facts& d) { return d.multicast; });
  return {"multicast", mood::good,
          fmt::format("{} by the GPUs; untax does not use it",
                      present ? "supported" : "not supported")};
}

/// Collects reasons why untax would be slow, or would not run, on this machine.
class obstacles {
 public:
  explicit obstacles(const device_survey& survey) : found_(survey) {}

  void of_devices(std::size_t heap_bytes) {
    for (std::size_t i = 0; i < found_.devices.size(); ++i) {
      const device_facts& d = found_.devices[i];
      const std::string who = fmt::format("GPU {}", i);
      if (d.major != 9 || d.minor != 0) {
        add(mood::bad,
            fmt::format("{} is of sm_{}{}; untax is compiled for sm_90a (Hopper) and its "
                        "kernels do not run there",
                        who, d.major, d.minor));
      }
      if (!d.virtual_memory)
        add(mood::warning, who + " has no virtual memory management, so no symmetric heap");
      if (!d.descriptors)
        add(mood::warning, who + " cannot share memory with other processes: use one process");
      if (d.memory_free < heap_bytes) {
        add(mood::warning, fmt::format("{} has {} free, less than the symmetric heap of {} ({})",
                                       who, format_bytes(d.memory_free), format_bytes(heap_bytes),
                                       variable::heap_bytes.name));
      }
      if (d.name != found_.devices.front().name)
        add(mood::warning, who + " is of another kind than GPU 0: all ranks wait for the slowest");
    }
  }

  void of_pairs() {
    const auto report = [this](mood verdict, const std::string& what, const auto& wrong) {
      if (const std::string pairs = pairs_where(found_, wrong); !pairs.empty())
        add(verdict, what + ": " + pairs);
    };
    report(mood::warning, "GPUs that cannot reach each other's memory, so no world has both",
           [](const peer_facts& p) { return !p.access; });
    report(mood::warning, "GPUs without native atomics between them",
           [](const peer_facts& p) { return p.access && !p.atomics; });
    report(mood::warning,
           fmt::format("slow links (below {:.0f} GB/s; PCIe, or NVLinks that are down)",
                       slow_link * 1e-9),
           [](const peer_facts& p) { return p.push > 0 && std::min(p.push, p.pull) < slow_link; });
    report(mood::warning, fmt::format("slow signals (above {:.0f} us)", slow_signal * 1e6),
           [](const peer_facts& p) { return p.signal_time > slow_signal; });
    if (!found_.measuring_problem.empty())
      add(mood::bad, "the links could not be measured: " + found_.measuring_problem);
  }

  void of_system() {
    rlimit files{};
    const auto needed = 4 * static_cast<rlim_t>(max_ranks);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < needed) {
      add(mood::warning, fmt::format("a process may open {} files (ulimit -n); worlds of many "
                                     "processes need {}",
                                     files.rlim_cur, needed));
    }
  }

  [[nodiscard]] std::vector<diagnosis> take() {
    if (all_.empty())
      add(mood::good, "nothing found that would make untax slow or impossible here");
    return std::move(all_);
  }

 private:
  void add(mood verdict, std::string text) {
    all_.push_back({"GPU obstacle", verdict, std::move(text)});
    if (verdict == mood::good) all_.back().subject = "GPU obstacles";
  }

  const device_survey& found_;
  std::vector<diagnosis> all_;
};

}  // namespace

std::string peers_of(const device_survey& survey, int columns, text_style how) {
  if (survey.devices.size() < 2) return "";
  using side = table::align;
  std::vector<table::column> titles = {{"from \\ to"}};
  for (std::size_t to = 0; to < survey.devices.size(); ++to)
    titles.push_back({fmt::format("GPU {}", to), side::right});
  table rows(std::move(titles));
  for (std::size_t from = 0; from < survey.devices.size(); ++from) {
    std::vector<std::string> cells = {fmt::format("GPU {}", from)};
    for (std::size_t to = 0; to < survey.devices.size(); ++to) {
      const peer_facts& p = survey.peers[from][to];
      if (from == to) {
        cells.emplace_back("-");
      } else if (!p.access) {
        cells.emplace_back("no");
      } else if (p.push > 0) {
        cells.push_back(
            fmt::format("{:.0f}/{:.0f}/{:.1f}", p.push * 1e-9, p.pull * 1e-9, p.signal_time * 1e6));
      } else {
        cells.emplace_back("yes");
      }
    }
    rows.add(std::move(cells));
  }
  return "\nPeers: stores there and loads from there in GB/s, and a signal there in us\n\n" +
         rows.render(columns, how.utf8);
}

gpu_examination examine_gpus(std::size_t heap_bytes, int columns, text_style how) {
  const device_survey survey = survey_devices(true);
  if (!survey.problem.empty()) {
    return {{{"GPUs", mood::good, survey.problem + "; work on the CPU needs none"}}, ""};
  }
  gpu_examination result;
  result.findings = {which(survey), software(survey), multicast(survey)};
  obstacles wrong(survey);
  wrong.of_devices(heap_bytes);
  wrong.of_pairs();
  wrong.of_system();
  for (diagnosis& d : wrong.take()) result.findings.push_back(std::move(d));
  result.matrix = peers_of(survey, columns, how);
  return result;
}

}  // namespace untax::cli
