#include "engines/timing/reader.hpp"

#include <algorithm>

#include "engines/schedule/need.hpp"

namespace untax::timing {
namespace {

/// Turns the steps of one worker into activities.
class step_reader {
 public:
  step_reader(workload& work, int rank, const step_costs& costs)
      : work_(work), rank_(rank), costs_(costs) {}

  void take(const step& s) {
    schedule::each_need(s, [&](channel_verb, const schedule::need& n) {
      work_.wait({n.rank, n.index, n.value});
    });
    act(s);
  }

 private:
  void act(const step& s) {
    const double bytes =
        static_cast<double>(s.rows) * static_cast<double>(s.cols) * costs_.element_bytes;
    switch (s.what) {
      case action::none:
        break;
      case action::copy:
        move(bytes, s.from, s.to);
        break;
      case action::multiply:
        current_.busy = 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.cols) *
                        static_cast<double>(s.depth) / costs_.multiply_rate;
        break;
      case action::add:
        local(bytes * 2);
        break;
      case action::store:
        move(bytes, {s.from.of, rank_, 0, 0}, s.to);
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
    finish(s);
  }

  void move(double bytes, const place& from, const place& to) {
    if (to.of == operand::panel && from.rank == rank_) return;  // multiplications read it
    current_.from = from.rank;
    current_.to = to.rank;
    const bool away = from.rank != to.rank;
    current_.bytes = away ? bytes * costs_.bytes_on_wire : bytes;
    current_.pace = away ? costs_.move_pace : costs_.local_pace;
    current_.begin_after = away ? costs_.begin_after : 0;
    current_.detached = costs_.detached && away;
    current_.posted = costs_.posted && away;
  }
  void local(double bytes) {
    current_.from = current_.to = rank_;
    current_.bytes = bytes;
    current_.pace = costs_.local_pace;
  }
  /// Gets the addends of other ranks, combines, and puts the result to all that are to have it.
  void reduce(const step& s, double bytes) {
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const place at = addend(s, i);
      if (at.rank == rank_ || at.of != operand::a) continue;
      move(bytes, at, {operand::sum, rank_, 0, 0});
      next();
    }
    if (!s.everywhere) {
      local(bytes);
      if (s.to.rank != rank_) move(bytes, {operand::sum, rank_, 0, 0}, s.to);
      return;
    }
    local(bytes);
    for (int i = 1; i < static_cast<int>(s.depth); ++i) {
      next();
      const int peer = (rank_ + i) % static_cast<int>(s.depth);
      move(bytes, {operand::sum, rank_, 0, 0}, target(s, peer));
    }
  }

  /// Two results, the sum and its norm: for this rank, and, if `everywhere`, for all others.
  void normalise(const step& s, double bytes) {
    local(bytes * 2);
    for (int i = 1; s.everywhere && i < static_cast<int>(s.depth); ++i) {
      next();
      const int peer = (rank_ + i) % static_cast<int>(s.depth);
      move(bytes * 2, {operand::sum, rank_, 0, 0}, target(s, peer));
    }
  }

  /// Ends the current activity, without signals.
  void next() {
    current_.way = costs_.way;
    work_.act(current_);
    current_ = {};
  }
  void finish(const step& s) {
    if (costs_.signal_after > 0 && current_.bytes > 0 && s.publish.named()) {
      next();
      current_.busy = costs_.signal_after;
    }
    if (s.publish.named()) work_.raise({s.publish.consumer, s.publish.ready, s.publish.use});
    if (s.retire.named() && s.retire.free >= 0)
      work_.raise({s.retire.producer, s.retire.free + s.reader, s.retire.use});
    current_.way = costs_.way;
    if (work_.pending() || current_.busy > 0 || current_.bytes > 0) work_.act(current_);
    current_ = {};
  }

  workload& work_;
  int rank_;
  const step_costs& costs_;
  activity current_;
};

}  // namespace

void add_steps(workload& work, const program& source, int kernel, int worker, std::uint64_t epoch,
               const step_costs& costs) {
  step_reader reader(work, source.rank(), costs);
  source.steps(kernel, worker, epoch, [&](const step& s) { reader.take(s); });
}

workload read_programs(std::span<const program> programs, std::uint64_t epoch,
                       const step_costs& costs) {
  workload work(static_cast<int>(programs.size()));
  for (const program& source : programs) {
    for (int i = 0; i < source.kernels(); ++i) {
      const kernel k = source.kernel_at(i);
      const int added = work.add_kernel(source.rank(), k.stage, k.name,
                                        k.stage == 0 ? costs.launch_first : costs.launch_next);
      for (int worker = 0; worker < k.workers; ++worker) {
        work.add_worker(added);
        add_steps(work, source, i, worker, epoch, costs);
      }
    }
  }
  return work;
}

}  // namespace untax::timing
