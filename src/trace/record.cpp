#include <untax/trace/record.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace untax {
namespace {

trace_span opened(const trace_event& event, const trace_mark& mark) {
  trace_span span;
  span.kind = mark.kind;
  span.what = mark.what;
  span.begin = span.end = event.time;
  span.number = mark.number;
  if (mark.counts()) {
    span.owner = mark.owner;
    span.counter = static_cast<int>(mark.counter);
  }
  span.count = std::max(mark.readers, 1);
  return span;
}

void close(trace_span& span, const trace_event& event, const trace_mark& mark) {
  span.end = event.time;
  if (span.kind != trace_kind::wait) return;
  span.peer = mark.owner == trace_mark::no_peer ? -1 : mark.owner;
  span.room = static_cast<int>(mark.counter);
}

std::uint64_t events_of(const std::vector<trace_span>& spans) {
  std::uint64_t events = 0;
  for (const trace_span& span : spans) events += span.kind == trace_kind::signal ? 1 : 2;
  return events;
}

}  // namespace

std::vector<trace_event> trace_ring::events() const {
  const std::uint64_t first = lost();
  std::vector<trace_event> trace_events;
  trace_events.reserve(static_cast<std::size_t>(noted_ - first));
  for (std::uint64_t i = first; i < noted_; ++i) trace_events.push_back(events_[i % capacity_]);
  return trace_events;
}

std::vector<trace_span> spans_of(const std::vector<trace_event>& events) {
  std::vector<trace_span> done;
  std::vector<trace_span> open;
  for (const trace_event& event : events) {
    const trace_mark mark = trace_mark::unpacked(event.word);
    if (mark.kind == trace_kind::signal) {
      done.push_back(opened(event, mark));
    } else if (!mark.end) {
      open.push_back(opened(event, mark));
    } else if (!open.empty() && open.back().kind == mark.kind) {
      close(open.back(), event, mark);
      done.push_back(open.back());
      open.pop_back();
    }
  }
  return done;
}

std::uint64_t trace_record::events() const noexcept {
  std::uint64_t events = 0;
  for (const traced_operator& op : operators) {
    events += events_of(op.calls);
    for (const auto& spans : op.workers) events += events_of(spans);
  }
  return events;
}

std::uint64_t trace_record::lost() const noexcept {
  std::uint64_t lost = 0;
  for (const traced_operator& op : operators) lost += op.lost;
  return lost;
}

std::string trace_record::summary() const {
  std::set<std::pair<std::uint64_t, int>> ranks;
  for (const traced_operator& op : operators) ranks.emplace(op.world, op.rank);
  return fmt::format(
      "{} events of {} rank{}; {}", events(), ranks.size(), ranks.size() == 1 ? "" : "s",
      lost() == 0 ? "all fitted"
                  : fmt::format("{} older ones did not fit and are not in it", lost()));
}

std::string_view name_of(trace_kind kind) noexcept {
  constexpr std::string_view names[] = {"run", "stage", "kernel", "action", "wait", "signal"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(action what) noexcept {
  constexpr std::string_view names[] = {"none",   "copy",   "multiply", "add",      "store",
                                        "reduce", "attend", "merge",    "normalise"};
  return names[static_cast<std::size_t>(what)];
}

}  // namespace untax
