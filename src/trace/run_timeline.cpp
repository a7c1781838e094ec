#include "run_timeline.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "rank_time.hpp"

namespace untax {
namespace {

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

/// Walks the critical path back from the end of a run: from each moment to the event that it waited
/// for.
class path_walk {
 public:
  path_walk(const std::vector<rank_time>& ranks, const signal_index& signals, run_account& account)
      : ranks_(ranks), signals_(signals), account_(account) {}

  void walk() {
    time_ = account_.end;
    const auto last =
        std::ranges::max_element(ranks_, {}, [](const rank_time& r) { return r.call().end; });
    rank_ = static_cast<std::size_t>(last - ranks_.begin());
    // The return of the call is a part of its launch.
    go_to_kernel();
    while (time_ > account_.begin) step();
  }

 private:
  void take(std::uint64_t from, trace_part part, int peer = -1) {
    from = std::max(from, account_.begin);
    if (from >= time_) return;
    account_.pieces.push_back({part, static_cast<int>(rank_), peer, from, time_});
    account_.path[part] += static_cast<double>(time_ - from) * 1e-9;
    time_ = from;
  }

  /// Goes from a moment of the caller back to the kernel that ended last, or to the call.
  void go_to_kernel() {
    const auto kernel = ranks_[rank_].last_kernel_before(time_);
    if (!kernel) {
      take(ranks_[rank_].call().begin, trace_part::launch);
      take(account_.begin, trace_part::entry);
      return;
    }
    take(kernel->second, trace_part::launch);
    worker_ = kernel->first;
  }

  void step() {
    const rank_time& own_time = ranks_[rank_];
    // A rank that has not yet called keeps the others waiting.
    if (time_ <= own_time.call().begin) return take(account_.begin, trace_part::entry);
    const piece* now = own_time.before(worker_, time_);
    if (now == nullptr) return take(account_.begin, trace_part::idle);
    if (now->part == trace_part::idle && go_to_busy(*now)) return;
    if (now->part == trace_part::launch || now->part == trace_part::tail) {
      // The launch began when the last kernel of the stage before had ended.
      take(now->begin, now->part);
      return go_to_kernel();
    }
    if (now->part == trace_part::in_flight) {
      take(now->begin, now->part, now->peer);
      if (now->begin > now->wait->begin) go_to_signal(*now->wait);
      return;
    }
    if (now->part == trace_part::late_peer && go_to_begin(*now)) return;
    take(now->begin, now->part, now->peer);
  }

  /// Handles a wait for data that are their own signal: their arrival is not recorded, but their
  /// sender's begin comes before it, and the path goes there. False if that is before the wait.
  bool go_to_begin(const piece& wait) {
    if (wait.wait->counter >= 0 || wait.peer < 0 || wait.peer == static_cast<int>(rank_))
      return false;
    const auto peer = static_cast<std::size_t>(wait.peer);
    if (peer >= ranks_.size()) return false;
    const auto began = ranks_[peer].first_kernel();
    if (!began || began->second <= wait.begin || began->second >= time_) return false;
    take(began->second, wait.part, wait.peer);
    rank_ = peer;
    worker_ = began->first;
    return true;
  }

  /// An idle warp waits for a busy warp of its block, or for the same event as another block of its
  /// cluster. The path goes back to the last moment at which one of these was busy, and continues
  /// there. False if none was busy since this warp became idle.
  bool go_to_busy(const piece& now) {
    const rank_time& own_time = ranks_[rank_];
    if (own_time.op().names.empty()) return false;
    std::uint64_t latest = now.begin;
    std::size_t busy = worker_;
    const trace_worker& me = own_time.op().names[worker_];
    for (std::size_t w = 0; w < own_time.workers().size(); ++w) {
      const trace_worker& other = own_time.op().names[w];
      if (w == worker_ || other.cluster != me.cluster) continue;
      const bool beside = other.block == me.block;
      if (const std::uint64_t end = own_time.busy_before(w, time_, latest, !beside); end > latest) {
        latest = end;
        busy = w;
      }
    }
    if (busy == worker_) return false;
    take(latest, trace_part::idle);
    worker_ = busy;
    return true;
  }

  /// Goes to the worker whose signal, at this moment, ended the wait.
  void go_to_signal(const trace_span& wait) {
    const auto place = signals_.signal_of(ranks_[rank_].op(), wait);
    if (!place) return;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (&ranks_[r].op() != signals_.op_of(*place)) continue;
      rank_ = r;
      worker_ = place->worker;
    }
  }

  const std::vector<rank_time>& ranks_;
  const signal_index& signals_;
  run_account& account_;
  std::uint64_t time_ = 0;
  std::size_t rank_ = 0;
  std::size_t worker_ = 0;
};

/// Whether a timeline shows a worker. Of the blocks of a GPU, it shows the first and the last.
bool is_shown(const traced_operator& op, std::size_t worker) {
  if (op.names.empty()) return true;
  const auto [first, last] = std::ranges::minmax(op.names, {}, &trace_worker::block);
  const int block = op.names[worker].block;
  return block == first.block || block == last.block;
}

}  // namespace

run_timelines::run_timelines(const trace_record& record, std::uint64_t id) : record_(&record) {
  for (std::size_t o = 0; o < record.operators.size(); ++o) {
    const traced_operator& op = record.operators[o];
    if (op.id != id) continue;
    if (of_rank_.empty()) of_rank_.assign(static_cast<std::size_t>(op.ranks), nobody);
    of_rank_[static_cast<std::size_t>(op.rank)] = o;
  }
}

std::vector<std::int64_t> run_timelines::epochs() const {
  std::set<std::int64_t> whole;
  if (std::ranges::find(of_rank_, nobody) != of_rank_.end()) return {};
  for (const trace_span& span : record_->operators[of_rank_.front()].calls) {
    if (span.kind == trace_kind::run && !run_of(span.number).empty()) whole.insert(span.number);
  }
  return {whole.begin(), whole.end()};
}

std::vector<run_timelines::rank_run> run_timelines::run_of(std::int64_t epoch) const {
  std::vector<rank_run> ranks;
  for (const std::size_t place : of_rank_) {
    const traced_operator& op = record_->operators[place];
    const auto call = std::ranges::find_if(op.calls, [epoch](const trace_span& span) {
      return span.kind == trace_kind::run && span.number == epoch;
    });
    if (call == op.calls.end()) return {};
    rank_run mine{place, *call, {}};
    for (const trace_span* stage : within(op.calls, *call)) {
      if (stage->kind == trace_kind::stage) mine.stages.push_back(*stage);
    }
    if (std::ssize(mine.stages) != call->count) return {};
    // A ring may have lost the kernels of a run whose call is still recorded.
    for (const trace_span& stage : mine.stages) {
      int kernels = 0;
      for (const auto& spans : op.workers) {
        for (const trace_span* span : within(spans, stage))
          kernels += span->kind == trace_kind::kernel ? 1 : 0;
      }
      if (kernels != stage.count) return {};
    }
    ranks.push_back(std::move(mine));
  }
  return ranks;
}

run_account run_timelines::account(std::int64_t epoch, const signal_index& signals) const {
  const std::vector<rank_run> runs = run_of(epoch);
  run_account account;
  account.epoch = epoch;
  account.begin =
      std::ranges::min(runs, {}, [](const rank_run& r) { return r.call.begin; }).call.begin;
  account.end = std::ranges::max(runs, {}, [](const rank_run& r) { return r.call.end; }).call.end;
  std::vector<rank_time> ranks;
  ranks.reserve(runs.size());
  for (const rank_run& r : runs) {
    ranks.emplace_back(record_->operators[r.op], signals, r.call, r.stages, account.begin,
                       account.end);
    account.ranks.push_back(ranks.back().mean());
    account.unmatched += ranks.back().unmatched();
  }
  path_walk(ranks, signals, account).walk();
  return account;
}

std::vector<timeline_piece> run_timelines::pieces(std::int64_t epoch,
                                                  const signal_index& signals) const {
  const std::vector<rank_run> runs = run_of(epoch);
  const run_account whole = account(epoch, signals);
  const auto seconds = [&](std::uint64_t time) {
    return (static_cast<double>(time) - static_cast<double>(whole.begin)) * 1e-9;
  };
  std::vector<timeline_piece> timeline_pieces;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const traced_operator& op = record_->operators[runs[r].op];
    const rank_time time(op, signals, runs[r].call, runs[r].stages, whole.begin, whole.end);
    for (std::size_t w = 0; w < time.workers().size(); ++w) {
      if (!is_shown(op, w)) continue;
      for (const piece& p : time.workers()[w]) {
        if (p.part == trace_part::idle || p.part == trace_part::tail) continue;
        timeline_piece& entry = timeline_pieces.emplace_back();
        entry.part = p.part;
        entry.rank = static_cast<int>(r);
        entry.worker = static_cast<int>(w);
        entry.begin = seconds(p.begin);
        entry.end = seconds(p.end);
        if (p.part != trace_part::in_flight) continue;
        if (const auto signal = signals.signal_of(op, *p.wait)) {
          entry.from_rank = signals.op_of(*signal)->rank;
          entry.from_worker = static_cast<int>(signal->worker);
          entry.sent = seconds(signals.at(*signal).begin);
        }
      }
    }
  }
  return timeline_pieces;
}

}  // namespace untax
