#include "engines/gpu/trace/decode.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <untax/flow/fault_tap.hpp>
#include <untax/flow/wait_site.hpp>

namespace untax::gpu {
namespace {

constexpr std::uint64_t address_bits = (std::uint64_t{1} << 47U) - 1;

/// Owner and number of a counter.
struct counter_place {
  int owner = 0;
  int number = -1;
};

counter_place place_of(const kernel_record& record, std::uint64_t address) {
  for (const counter_range& range : record.counters) {
    for (int owner = 0; owner < record.ranks; ++owner) {
      const std::uint64_t begin =
          (range.local + static_cast<std::uint64_t>((owner - record.rank) * range.span)) &
          address_bits;
      if (address < begin || (address - begin) / sizeof(std::uint64_t) >= range.count) continue;
      return {owner, range.first + static_cast<int>((address - begin) / sizeof(std::uint64_t))};
    }
  }
  return {record.rank, -1};  // data that tell of themselves
}

/// Kernels that are launched alike: those of the same group and launch of a run.
struct launched {
  int group = 0;
  int launch = 0;
  bool operator<(const launched& other) const {
    return std::pair(group, launch) < std::pair(other.group, other.launch);
  }
};

/// A warp's part of a kernel.
struct kernel_part {
  launched by;
  warp_role role = warp_role::none;
  std::int64_t epoch = 0;
  trace_span span;
};

/// What a ring holds, taken apart.
struct warp_events {
  std::vector<kernel_part> kernels;
  std::vector<trace_span> others;
};

class ring_reader {
 public:
  ring_reader(const kernel_record& record, const warp_ring& ring) : record_(record), ring_(ring) {}

  warp_events read() {
    for (const trace_event& event : ring_.events) {
      const event_word word{event.word};
      const std::uint64_t time = record_.clock.on_host(event.time);
      switch (word.kind()) {
        case trace_kind::kernel:
          kernel(word, time);
          break;
        case trace_kind::action:
          act(word, time);
          break;
        case trace_kind::wait:
          wait(word, time);
          break;
        case trace_kind::signal:
          found_.others.push_back(at_counter(word, time));
          break;
        default:
          break;
      }
    }
    return std::move(found_);
  }

 private:
  void kernel(const event_word& word, std::uint64_t time) {
    action_.reset();
    wait_.reset();
    if (!word.ends()) {
      kernel_part& part = kernel_.emplace();
      part.by = {ring_.group, word.launch()};
      part.role = static_cast<warp_role>(word.what());
      part.epoch = word.epoch();
      part.span.kind = trace_kind::kernel;
      part.span.begin = time;
      others_before_ = found_.others.size();
    } else if (kernel_) {
      kernel_->span.end = time;
      found_.kernels.push_back(*kernel_);
      act_throughout();
      kernel_.reset();
    }
  }
  /// What warps of some roles do, they do from begin to end, but for their waits. One that neither
  /// waits nor signals has nothing to do.
  void act_throughout() {
    action what = action::none;
    if (kernel_->role == warp_role::sender) what = action::copy;
    if (kernel_->role == warp_role::adder) what = action::add;
    if (kernel_->role == warp_role::receiver) what = action::merge;
    if (what == action::none || found_.others.size() == others_before_) return;
    trace_span throughout = kernel_->span;
    throughout.kind = trace_kind::action;
    throughout.what = static_cast<int>(what);
    found_.others.push_back(throughout);
  }
  void act(const event_word& word, std::uint64_t time) {
    if (!word.ends()) {
      action_ = trace_span{.kind = trace_kind::action, .what = word.what(), .begin = time};
    } else if (action_) {
      action_->end = time;
      found_.others.push_back(*action_);
      action_.reset();
    }
  }
  /// Both events of a wait are noted at its end.
  void wait(const event_word& word, std::uint64_t time) {
    if (!word.ends()) {
      wait_ = at_counter(word, time);
      return;
    }
    if (!wait_) return;
    wait_->end = time;
    const bool reserves = static_cast<verb>(word.what()) == verb::reserve;
    wait_->what = static_cast<int>(reserves ? channel_verb::reserve : channel_verb::acquire);
    wait_->peer = word.peer() < record_.ranks ? word.peer() : -1;
    wait_->room = word.room();
    found_.others.push_back(*wait_);
    wait_.reset();
  }
  [[nodiscard]] trace_span at_counter(const event_word& word, std::uint64_t time) const {
    const counter_place place = place_of(record_, word.counter());
    trace_span span;
    span.kind = word.kind();
    span.what = static_cast<int>(channel_verb::publish);
    span.begin = span.end = time;
    span.number = word.value();
    span.owner = place.owner;
    span.counter = place.number;
    return span;
  }

  const kernel_record& record_;
  const warp_ring& ring_;
  std::optional<kernel_part> kernel_;
  std::optional<trace_span> action_;
  std::optional<trace_span> wait_;
  std::size_t others_before_ = 0;  // the kernel that is open
  warp_events found_;
};

/// Of all warps that kernels launched alike have in one run.
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

/// Kernels that overlap are one stage. Where each begins and ends.
std::vector<launch_times> stages_of(const times_of_run& run) {
  std::vector<launch_times> all;
  for (const auto& [by, times] : run) all.push_back(times);
  std::ranges::sort(all, {}, &launch_times::begin);
  std::vector<launch_times> stages;
  for (const launch_times& one : all) {
    if (stages.empty() || one.begin >= stages.back().end) {
      stages.push_back(one);
    } else {
      stages.back().end = std::max(stages.back().end, one.end);
      stages.back().parts += one.parts;
    }
  }
  return stages;
}

/// Runs and their stages, of those runs of which every launch has all of its parts.
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
    std::vector<trace_span> all;
    std::uint64_t last_end = 0;
    for (const auto& [epoch, run] : runs_) {
      const std::vector<launch_times> stages = stages_of(run);
      if (is_whole(run)) {
        std::uint64_t begin = stages.front().begin;
        if (known && epoch > 0)
          begin = std::min(begin, std::max(calls[static_cast<std::size_t>(epoch - 1)], last_end));
        add(all, epoch, begin, stages);
      }
      last_end = std::max(last_end, stages.back().end);
    }
    return all;
  }

 private:
  [[nodiscard]] bool is_whole(const times_of_run& run) const {
    return std::ranges::all_of(most_, [&](const auto& most) {
      const auto found = run.find(most.first);
      return found != run.end() && found->second.parts == most.second;
    });
  }
  static void add(std::vector<trace_span>& all, std::int64_t epoch, std::uint64_t begin,
                  const std::vector<launch_times>& stages) {
    trace_span call{.kind = trace_kind::run, .begin = begin, .end = stages.back().end};
    call.number = epoch;
    call.count = static_cast<int>(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      trace_span stage{.kind = trace_kind::stage, .begin = begin, .end = stages[i].end};
      stage.number = static_cast<std::int64_t>(i);
      stage.count = stages[i].parts;
      all.push_back(stage);
      begin = stages[i].end;
    }
    all.push_back(call);
  }

  std::map<std::int64_t, times_of_run> runs_;  // by epoch
  std::map<launched, int> most_;               // parts of a launch
};

/// Numbers kernels by what is launched and by role.
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

/// By the time of the end, what encloses others behind them, and moments last: as they come back
/// from files.
bool ends_before(const trace_span& a, const trace_span& b) {
  const auto key = [](const trace_span& span) {
    const bool lasts = span.end > span.begin;
    return std::tuple(span.end, !lasts, lasts ? ~span.begin : 0);
  };
  return key(a) < key(b);
}

bool multiplies(const trace_span& span) {
  return span.kind == trace_kind::action && span.what == static_cast<int>(action::multiply);
}

/// How long the multiplications of a tile take, as a rule.
std::uint64_t usual_time(const std::vector<warp_events>& warps) {
  std::vector<std::uint64_t> all;
  for (const warp_events& warp : warps) {
    for (const trace_span& span : warp.others)
      if (multiplies(span)) all.push_back(span.end - span.begin);
  }
  std::ranges::sort(all);
  return all.empty() ? 0 : all[all.size() / 2];
}

/// A tile is multiplied from when its first part has come, and a producer or a poller may have to
/// wait for more of it: then the multipliers of its block wait, too, though they do not note it. Of
/// the waits that end within a tile the last one is theirs, for as long as the tile took longer
/// than as a rule: what the producer is ahead hides short ones.
void share_waits(const std::vector<warp_ring>& rings, std::vector<warp_events>& warps) {
  const std::uint64_t usual = usual_time(warps);
  std::map<std::pair<int, int>, std::vector<trace_span>> waits;  // by block
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const auto& kernels = warps[w].kernels;
    const warp_role role = kernels.empty() ? warp_role::none : kernels.front().role;
    if (role != warp_role::producer && role != warp_role::poller) continue;
    for (const trace_span& span : warps[w].others) {
      if (span.kind == trace_kind::wait) waits[{rings[w].group, rings[w].block}].push_back(span);
    }
  }
  for (auto& [block, all] : waits) std::ranges::sort(all, {}, &trace_span::end);
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const auto found = waits.find({rings[w].group, rings[w].block});
    if (found == waits.end()) continue;
    std::vector<trace_span> shared;
    for (const trace_span& tile : warps[w].others) {
      if (!multiplies(tile) || tile.end - tile.begin <= usual) continue;
      const auto behind = std::ranges::lower_bound(found->second, tile.end, {}, &trace_span::end);
      if (behind == found->second.begin() || std::prev(behind)->end <= tile.begin) continue;
      trace_span last = *std::prev(behind);
      const std::uint64_t longer = tile.end - tile.begin - usual;
      last.begin = std::max({last.begin, tile.begin, last.end - std::min(last.end, longer)});
      shared.push_back(last);
    }
    std::ranges::copy(shared, std::back_inserter(warps[w].others));
  }
}

/// Counters that this rank waits for to reserve are raised by readers, at all ranks.
std::set<int> counters_of_readers(const std::vector<warp_events>& warps) {
  std::set<int> found;
  for (const warp_events& warp : warps) {
    for (const trace_span& span : warp.others) {
      if (span.kind == trace_kind::wait && span.what == static_cast<int>(channel_verb::reserve))
        found.insert(span.counter);
    }
  }
  return found;
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
    warps.push_back(ring_reader(record, ring).read());
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
         ring.group << 16U | ring.block});
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
