#include "engines/gpu/trace/decode.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <untax/flow/fault_tap.hpp>

#include "engines/gpu/trace/warp_events.hpp"

namespace untax::gpu {
namespace {

/// The times of all warps, in one run, of kernels with the same group and launch.
struct launch_times {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  int parts = 0;

  void add(const trace_span& span) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
    ++parts;
  }
};

using times_of_run = std::map<launched, launch_times>;

/// Where each stage begins and ends. Kernels that overlap form one stage.
std::vector<launch_times> stages_of(const times_of_run& run) {
  std::vector<launch_times> launches;
  for (const auto& [by, times] : run) launches.push_back(times);
  std::ranges::sort(launches, {}, &launch_times::begin);
  std::vector<launch_times> stages;
  for (const launch_times& launch : launches) {
    if (stages.empty() || launch.begin >= stages.back().end) {
      stages.push_back(launch);
    } else {
      stages.back().end = std::max(stages.back().end, launch.end);
      stages.back().parts += launch.parts;
    }
  }
  return stages;
}

/// Finds runs and their stages. A run counts only if each of its launches has all of its parts.
class run_finder {
 public:
  explicit run_finder(const std::vector<warp_events>& warps) {
    for (const warp_events& warp : warps) {
      for (const kernel_part& part : warp.kernels) runs_[part.epoch][part.by].add(part.span);
    }
    for (const auto& [epoch, run] : runs_) {
      for (const auto& [by, times] : run) most_[by] = std::max(most_[by], times.parts);
    }
  }

  [[nodiscard]] std::vector<trace_span> spans(const std::vector<std::uint64_t>& calls) const {
    const bool known = !runs_.empty() && std::ssize(calls) == runs_.rbegin()->first;
    std::vector<trace_span> trace_spans;
    std::uint64_t last_end = 0;
    for (const auto& [epoch, run] : runs_) {
      const std::vector<launch_times> stages = stages_of(run);
      if (is_whole(run)) {
        std::uint64_t begin = stages.front().begin;
        if (known && epoch > 0)
          begin = std::min(begin, std::max(calls[static_cast<std::size_t>(epoch - 1)], last_end));
        add(trace_spans, epoch, begin, stages);
      }
      last_end = std::max(last_end, stages.back().end);
    }
    return trace_spans;
  }

 private:
  [[nodiscard]] bool is_whole(const times_of_run& run) const {
    return std::ranges::all_of(most_, [&](const auto& most) {
      const auto match = run.find(most.first);
      return match != run.end() && match->second.parts == most.second;
    });
  }
  static void add(std::vector<trace_span>& spans, std::int64_t epoch, std::uint64_t begin,
                  const std::vector<launch_times>& stages) {
    trace_span call{.kind = trace_kind::run, .begin = begin, .end = stages.back().end};
    call.number = epoch;
    call.count = static_cast<int>(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      trace_span stage{.kind = trace_kind::stage, .begin = begin, .end = stages[i].end};
      stage.number = static_cast<std::int64_t>(i);
      stage.count = stages[i].parts;
      spans.push_back(stage);
      begin = stages[i].end;
    }
    spans.push_back(call);
  }

  std::map<std::int64_t, times_of_run> runs_;  // by epoch
  std::map<launched, int> most_;               // the most parts of a launch in any run
};

/// Numbers kernels by launch and by role.
class kernel_numbers {
 public:
  std::int64_t of(const kernel_part& part, std::vector<trace_kernel>& kernels) {
    const auto [it, added] =
        numbers_.try_emplace({part.by, part.role}, static_cast<std::int64_t>(kernels.size()));
    if (added) kernels.push_back({std::string(name_of(part.role)), part.by.launch, 0});
    return it->second;
  }

 private:
  std::map<std::pair<launched, warp_role>, std::int64_t> numbers_;
};

/// Order by end time. With equal ends, an enclosing span follows those that it encloses, and
/// moments are last. Spans that are read from files have the same order.
bool ends_before(const trace_span& a, const trace_span& b) {
  const auto key = [](const trace_span& span) {
    const bool lasts = span.end > span.begin;
    return std::tuple(span.end, !lasts, lasts ? ~span.begin : 0);
  };
  return key(a) < key(b);
}

/// The counters that reserves of this rank wait for. Readers at each rank raise counters with these
/// numbers.
std::set<int> counters_of_readers(const std::vector<warp_events>& warps) {
  std::set<int> numbers;
  for (const warp_events& warp : warps) {
    for (const trace_span& span : warp.others) {
      if (span.kind == trace_kind::wait && span.what == static_cast<int>(channel_verb::reserve))
        numbers.insert(span.counter);
    }
  }
  return numbers;
}

}  // namespace

std::uint64_t clock_line::on_host(std::uint64_t time) const noexcept {
  std::int64_t offset = first_offset;
  if (second > first) {
    const double part = (static_cast<double>(time) - static_cast<double>(first)) /
                        (static_cast<double>(second) - static_cast<double>(first));
    offset += static_cast<std::int64_t>(part * static_cast<double>(second_offset - first_offset));
  }
  return time + static_cast<std::uint64_t>(offset);
}

std::string_view name_of(warp_role role) noexcept {
  constexpr std::string_view names[] = {"none",     "control",    "sender",   "producer",
                                        "poller",   "multiplier", "epilogue", "adder",
                                        "streamer", "merger",     "receiver", "worker"};
  const auto number = static_cast<std::size_t>(role);
  return number < std::size(names) ? names[number] : names[0];
}

void decode(const kernel_record& record, traced_operator& op) {
  std::vector<warp_events> warps;
  for (const warp_ring& ring : record.rings) {
    warps.push_back(read_ring(record, ring));
    op.lost += ring.noted - ring.events.size();
  }
  op.lost += record.without_ring;
  share_waits(record.rings, warps);
  op.calls = run_finder(warps).spans(record.calls);
  const std::set<int> of_readers = counters_of_readers(warps);
  kernel_numbers numbers;
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const warp_ring& ring = record.rings[w];
    std::vector<trace_span>& spans = op.workers.emplace_back(std::move(warps[w].others));
    for (trace_span& span : spans) {
      if (span.kind == trace_kind::signal && of_readers.contains(span.counter))
        span.what = static_cast<int>(channel_verb::retire);
    }
    std::string_view role = name_of(warp_role::none);
    for (kernel_part& part : warps[w].kernels) {
      role = name_of(part.role);
      part.span.number = numbers.of(part, op.kernels);
      spans.push_back(part.span);
    }
    std::ranges::stable_sort(spans, ends_before);
    op.names.push_back(
        {fmt::format("{}CTA {}, warp {}, {}", ring.group == 0 ? "" : "other kernel, ", ring.block,
                     ring.warp, role),
         ring.group << 16U | ring.block,
         ring.group << 16U | ring.block / warps[w].cluster * warps[w].cluster});
  }
  for (trace_kernel& kernel : op.kernels) kernel.workers = 0;
  for (const auto& spans : op.workers) {
    std::set<std::int64_t> seen;
    for (const trace_span& span : spans) {
      if (span.kind == trace_kind::kernel && seen.insert(span.number).second)
        ++op.kernels[static_cast<std::size_t>(span.number)].workers;
    }
  }
}

}  // namespace untax::gpu
