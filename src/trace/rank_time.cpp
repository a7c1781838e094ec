#include "rank_time.hpp"

#include <algorithm>

#include "match.hpp"

namespace untax {
namespace {

bool is_wait(trace_part part) {
  return part == trace_part::late_peer || part == trace_part::in_flight;
}
bool at_work(trace_part part) {
  return is_wait(part) || part == trace_part::compute || part == trace_part::movement;
}

bool lies_in(const trace_span& inner, const trace_span& outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace

std::vector<const trace_span*> within(const std::vector<trace_span>& spans,
                                      const trace_span& outer) {
  std::vector<const trace_span*> inside;
  auto it = std::ranges::lower_bound(spans, outer.begin, {}, &trace_span::end);
  for (; it != spans.end() && it->end <= outer.end; ++it) {
    if (lies_in(*it, outer)) inside.push_back(&*it);
  }
  return inside;
}

/// One worker's time from `begin` to `end`, in order and without gaps.
class worker_time {
 public:
  worker_time(std::uint64_t begin, std::uint64_t end) : at_(begin), last_(end) {}

  /// Assigns the time up to `end` to `part`.
  void until(std::uint64_t end, trace_part part, int peer = -1, const trace_span* wait = nullptr) {
    end = std::min(end, last_);
    if (end <= at_) return;
    pieces_.push_back({part, at_, end, peer, wait});
    at_ = end;
  }
  [[nodiscard]] std::vector<piece> finish() && {
    until(last_, trace_part::idle);
    return std::move(pieces_);
  }

 private:
  std::uint64_t at_;
  std::uint64_t last_;
  std::vector<piece> pieces_;
};

rank_time::rank_time(const traced_operator& op, const signal_index& signals, const trace_span& call,
                     const std::vector<trace_span>& stages, std::uint64_t begin, std::uint64_t end)
    : op_(op), signals_(signals), call_(call), stages_(stages) {
  for (std::size_t w = 0; w < op.workers.size(); ++w)
    workers_.push_back(time_of(op.workers[w], begin, end));
}

trace_breakdown rank_time::mean() const {
  trace_breakdown sum;
  const double share = 1e-9 / static_cast<double>(workers_.size());
  for (const auto& pieces : workers_) {
    for (const piece& p : pieces) sum[p.part] += static_cast<double>(p.end - p.begin) * share;
  }
  return sum;
}

const piece* rank_time::before(std::size_t worker, std::uint64_t time) const {
  const auto& pieces = workers_[worker];
  const auto it = std::ranges::lower_bound(pieces, time, {}, &piece::end);
  return it == pieces.end() || it->begin >= time ? nullptr : &*it;
}

std::uint64_t rank_time::busy_before(std::size_t worker, std::uint64_t time, std::uint64_t since,
                                     bool waits) const {
  const auto& pieces = workers_[worker];
  auto it = std::ranges::lower_bound(pieces, time, {}, &piece::end);
  if (it == pieces.end()) --it;
  for (;; --it) {
    const std::uint64_t end = std::min(it->end, time);
    if (end <= since) return since;
    if ((waits ? is_wait(it->part) : at_work(it->part)) && it->begin < time) return end;
    if (it == pieces.begin()) return since;
  }
}

std::optional<std::pair<std::size_t, std::uint64_t>> rank_time::last_kernel_before(
    std::uint64_t time) const {
  std::optional<std::pair<std::size_t, std::uint64_t>> last;
  for (std::size_t w = 0; w < op_.workers.size(); ++w) {
    for (const trace_span* span : within(op_.workers[w], call_)) {
      if (span->kind == trace_kind::kernel && span->end <= time &&
          (!last || span->end > last->second))
        last = {w, span->end};
    }
  }
  return last;
}

std::optional<std::pair<std::size_t, std::uint64_t>> rank_time::first_kernel() const {
  std::optional<std::pair<std::size_t, std::uint64_t>> first;
  for (std::size_t w = 0; w < op_.workers.size(); ++w) {
    for (const trace_span* span : within(op_.workers[w], call_)) {
      if (span->kind == trace_kind::kernel && (!first || span->begin < first->second))
        first = {w, span->begin};
    }
  }
  return first;
}

std::vector<piece> rank_time::time_of(const std::vector<trace_span>& spans, std::uint64_t begin,
                                      std::uint64_t end) {
  worker_time time(begin, end);
  time.until(call_.begin, trace_part::entry);
  for (const trace_span& stage : stages_) {
    time.until(stage.begin, trace_part::launch);
    bool launched = false;
    for (const trace_span* span : within(spans, stage)) {
      if (span->kind != trace_kind::kernel) continue;
      time.until(span->begin, trace_part::launch);
      in_kernel(time, spans, *span);
      launched = true;
    }
    time.until(stage.end, launched ? trace_part::tail : trace_part::idle);
  }
  // The rest of the call counts as launch. After the return the rank is idle.
  time.until(call_.end, trace_part::launch);
  return std::move(time).finish();
}

/// Divides a kernel. Waits may lie in actions; a warp's waits for several counters coincide.
void rank_time::in_kernel(worker_time& time, const std::vector<trace_span>& spans,
                          const trace_span& kernel) {
  std::vector<const trace_span*> actions;
  std::vector<const trace_span*> waits;
  for (const trace_span* span : within(spans, kernel)) {
    if (span->kind == trace_kind::action) actions.push_back(span);
    if (span->kind == trace_kind::wait) waits.push_back(span);
  }
  auto action = actions.begin();
  const auto act_until = [&](std::uint64_t end) {
    for (; action != actions.end() && (*action)->begin < end; ++action) {
      time.until((*action)->begin, trace_part::idle);
      const bool moving = moves(static_cast<untax::action>((*action)->what));
      time.until(std::min((*action)->end, end),
                 moving ? trace_part::movement : trace_part::compute);
      if ((*action)->end > end) return;
    }
    time.until(end, trace_part::idle);
  };
  for (auto wait = waits.begin(); wait != waits.end();) {
    const trace_span* last = *wait;
    wait_parts parts = parts_of(signals_, op_, *last);
    // A wait for other warps of the same rank has no counter.
    const bool of_own = last->counter < 0 && last->peer == op_.rank;
    unmatched_ += parts.matched || of_own ? 0 : 1;
    const auto same = [&](const trace_span& other) {
      return other.begin == last->begin && other.end == last->end;
    };
    for (++wait; wait != waits.end() && same(**wait); ++wait) {
      const wait_parts others = parts_of(signals_, op_, **wait);
      unmatched_ += others.matched ? 0 : 1;
      // The wait whose signal came last counts; waits without a signal come after those.
      if (std::pair(others.matched, others.late) <= std::pair(parts.matched, parts.late)) continue;
      last = *wait;
      parts = others;
    }
    act_until(last->begin);
    if (of_own) {
      time.until(last->end, trace_part::idle);
      continue;
    }
    time.until(last->begin + parts.late, trace_part::late_peer, last->peer, last);
    time.until(last->end, trace_part::in_flight, last->peer, last);
  }
  act_until(kernel.end);
}

}  // namespace untax
