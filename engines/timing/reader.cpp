#include "engines/timing/reader.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/schedule/need.hpp"

namespace untax::timing {
namespace {

/// A copy within a rank reads and writes each byte.
constexpr double only_writes = 0.5;
/// Additions without waits are one activity, up to this many bytes.
constexpr double most_added = 1 << 18;

/// Turns the steps of one worker into activities. Consecutive steps without a new wait become one
/// activity: k-blocks of a tile, words of a tile for the same rank, and additions.
class step_reader {
 public:
  /// `leaves_sums`: whether a counter is a flag of `lane_program::add_sums_flag`.
  step_reader(workload& work, int rank, const step_costs& costs,
              const std::function<bool(int)>& leaves_sums)
      : work_(work), rank_(rank), costs_(costs), leaves_sums_(leaves_sums) {
    current_.busy = costs.begin;
  }

  void take(const step& s) {
    bool waits = false;
    schedule::each_need(s, [&](channel_verb, const schedule::need&) { waits = true; });
    if (!joins(s, waits)) end();
    schedule::each_need(s, [&](channel_verb verb, const schedule::need& n) {
      work_.wait({n.rank, n.index, n.value});
      if (verb == channel_verb::acquire && n.rank == rank_ && leaves_sums_(n.index))
        multiplied_ = true;
    });
    act(s);
    signal(s);
  }
  /// To be called after the last step.
  void end() {
    if (work_.pending() || has_work()) work_.act(current_);
    current_ = {};
    for (const auto& [rank, bytes] : sums_) {
      move(bytes, {operand::sum, rank_, 0, 0}, {operand::c, rank, 0, 0});
      current_.detached = costs_.detached;
      next();
    }
    sums_.clear();
    kind_ = action::none;
    acts_ = signals_ = false;
  }

 private:
  [[nodiscard]] bool has_work() const { return current_.busy > 0 || current_.bytes > 0; }

  /// Whether a step becomes a part of the current activity. The waits of an activity come before
  /// all of its work, and its signals after it.
  [[nodiscard]] bool joins(const step& s, bool waits) const {
    if (!acts_) return true;
    if (s.what == action::none) return !waits && !s.publish.named() && !s.retire.named();
    if (stores_sum(s)) return !waits;
    if (s.what != kind_) return false;
    switch (s.what) {
      case action::add:
        return !s.first || (!waits && current_.bytes < most_added);
      case action::multiply:
        return !waits && !signals_;
      case action::store:
        return !waits && current_.to == s.to.rank && costs_.way == signal_way::inside;
      default:
        return false;
    }
  }
  /// Whether a step stores the sum of the current activity, without a signal.
  [[nodiscard]] bool stores_sum(const step& s) const {
    return s.what == action::store && kind_ == action::add && !s.publish.named();
  }
  /// A store within the rank only writes; other stores follow the additions.
  void store_sum(const step& s, double bytes) {
    if (s.to.rank == rank_) return local(bytes * only_writes);
    const auto known = std::ranges::find(sums_, s.to.rank, &sent_sums::rank);
    if (known == sums_.end()) {
      sums_.push_back({s.to.rank, bytes});
    } else {
      known->bytes += bytes;
    }
  }

  void act(const step& s) {
    const double bytes =
        static_cast<double>(s.rows) * static_cast<double>(s.cols) * costs_.element_bytes;
    if (stores_sum(s)) return store_sum(s, bytes);
    if (s.what != action::none) {
      kind_ = s.what;
      acts_ = true;
    }
    switch (s.what) {
      case action::none:
        break;
      case action::copy:
        if (s.to.of == operand::panel && s.from.rank == rank_) {
          // Rows that lie apart are multiplied together.
          if (s.to.row == 0) current_.busy += costs_.k_seconds * static_cast<double>(s.cols);
        } else {
          move(bytes, s.from, s.to);
        }
        break;
      case action::multiply:
        if (!multiplied_) current_.busy += costs_.k_seconds * static_cast<double>(s.depth);
        multiplied_ = multiplied_ && !s.last;
        break;
      case action::add:
        local(bytes * costs_.added_bytes);
        if (costs_.added_together > 0)
          current_.busy += costs_.add_seconds *
                           static_cast<double>(ceil_div(s.rows * s.cols, costs_.added_together));
        break;
      case action::store:
        move(bytes, {s.from.of, rank_, 0, 0}, s.to);
        current_.detached = costs_.detached;
        break;
      case action::reduce:
        reduce(s, bytes);
        break;
      case action::attend:
      case action::merge:
        local(bytes * static_cast<double>(std::max<std::int64_t>(s.depth, 1)));
        break;
      case action::normalise:
        normalise(s, bytes);
        break;
    }
  }

  void move(double bytes, const place& from, const place& to) {
    current_.from = from.rank;
    current_.to = to.rank;
    const bool away = from.rank != to.rank;
    current_.bytes += away ? bytes * costs_.bytes_on_wire : bytes;
    current_.pace = away ? costs_.move_pace : costs_.local_pace;
    current_.begin_after = away ? costs_.begin_after : 0;
    current_.detached = costs_.detached && away;
    current_.posted = costs_.posted && away;
  }
  void local(double bytes) {
    current_.from = current_.to = rank_;
    current_.bytes += bytes;
    current_.pace = costs_.local_pace;
    current_.detached = costs_.detached;
  }
  /// Gets the addends of other ranks, combines them, and puts the result to all its receivers.
  void reduce(const step& s, double bytes) {
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const place at = addend(s, i);
      if (at.rank == rank_ || at.of != operand::a) continue;
      move(bytes, at, {operand::sum, rank_, 0, 0});
      next();
    }
    if (!s.everywhere) {
      if (s.to.rank != rank_) return move(bytes, {operand::sum, rank_, 0, 0}, s.to);
      return local(bytes);
    }
    local(bytes);
    for (int i = 1; i < static_cast<int>(s.depth); ++i) {
      next();
      const int peer = (rank_ + i) % static_cast<int>(s.depth);
      move(bytes, {operand::sum, rank_, 0, 0}, target(s, peer));
    }
  }

  /// Two results, the sum and its norm, go to this rank and, if `everywhere`, to all others.
  void normalise(const step& s, double bytes) {
    local(bytes * 2);
    for (int i = 1; s.everywhere && i < static_cast<int>(s.depth); ++i) {
      next();
      const int peer = (rank_ + i) % static_cast<int>(s.depth);
      move(bytes * 2, {operand::sum, rank_, 0, 0}, target(s, peer));
    }
  }

  /// Ends the current activity without its signals; more of the same step follows.
  void next() {
    work_.act(current_);
    current_ = {};
  }

  void signal(const step& s) {
    if (costs_.signal_after > 0 && current_.to != current_.from && s.publish.named()) {
      next();
      current_.busy = costs_.signal_after;
    }
    if (s.publish.named()) raise({s.publish.consumer, s.publish.ready, s.publish.use});
    if (s.retire.named() && s.retire.free >= 0)
      raise({s.retire.producer, s.retire.free + s.reader, s.retire.use});
  }
  void raise(const timing::signal& what) {
    work_.raise(what);
    acts_ = signals_ = true;
    const bool at_once = costs_.way == signal_way::inside && current_.bytes == 0;
    current_.way = at_once && what.rank == rank_ ? signal_way::at_once : costs_.way;
    if (costs_.detached && current_.bytes == 0) current_.posted = true;
  }

  struct sent_sums {
    int rank = 0;
    double bytes = 0;
  };

  workload& work_;
  int rank_;
  const step_costs& costs_;
  const std::function<bool(int)>& leaves_sums_;
  activity current_;
  action kind_ = action::none;  // of the current activity
  bool acts_ = false;           // whether the current activity does more than wait
  bool signals_ = false;
  std::vector<sent_sums> sums_;  // the sums that follow the current activity
  bool multiplied_ =
      false;  // whether another lane has already done this lane's next multiplication
};

/// Reads all kernels of a rank.
void read(workload& work, const program& source, std::uint64_t epoch,
          const std::function<step_costs(int)>& costs_of,
          const std::function<bool(int)>& leaves_sums) {
  for (int i = 0; i < source.kernels(); ++i) {
    const kernel k = source.kernel_at(i);
    const step_costs costs = costs_of(i);
    const int added = work.add_kernel(source.rank(), k.stage, k.name, costs.launch, costs.rate);
    for (int worker = 0; worker < k.workers; ++worker) {
      work.add_worker(added);
      step_reader reader(work, source.rank(), costs, leaves_sums);
      source.steps(i, worker, epoch, [&](const step& s) { reader.take(s); });
      reader.end();
    }
  }
}

}  // namespace

workload read_programs(std::span<const program> programs, std::uint64_t epoch,
                       const std::function<step_costs(const kernel&)>& costs_of) {
  workload work(static_cast<int>(programs.size()));
  for (const program& source : programs)
    read(
        work, source, epoch, [&](int i) { return costs_of(source.kernel_at(i)); },
        [](int) { return false; });
  return work;
}

workload read_lanes(std::span<const schedule::lane_program> ranks,
                    const std::function<step_costs(schedule::lane_work, int)>& costs_of) {
  workload work(static_cast<int>(ranks.size()));
  for (const schedule::lane_program& rank : ranks)
    read(
        work, program(rank), 1, [&](int i) { return costs_of(rank.work_of(i), i); },
        [&](int flag) { return rank.leaves_sums(flag); });
  return work;
}

}  // namespace untax::timing
