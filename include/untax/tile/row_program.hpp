#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/tile/program.hpp>

namespace untax {

/// The number of sets of memory and counters. Runs use them in turn.
inline constexpr int run_sets = 2;

/// A run of an operator with a capacity: its number, and its rows.
struct row_run {
  std::uint64_t number = 1;  ///< from 1
  std::int64_t rows = 0;

  /// The set that the run uses.
  [[nodiscard]] constexpr int set() const noexcept { return room_sets{run_sets}.set_of(number); }
  /// The number of times that the set of this run has been used, this run included.
  [[nodiscard]] constexpr std::uint64_t turn() const noexcept {
    return room_sets{run_sets}.use_of(number);
  }
};

/// The programs of one rank for every number of rows up to a capacity.
///
/// A run is the first epoch of the protocol for its rows, in a set of memory and counters that all
/// ranks have left. Counters count on from the largest value that the previous run may have left in
/// the set, so nothing is reset, and a signal that comes late has a value that is too small to
/// matter.
///
/// The roll call shows that all ranks have left a set: at its beginning a run sends a flag to every
/// rank, and before its end it has received one from every rank. A rank that ends run t knows that
/// all others have begun it, so they have ended run t - 1, whose set run t + 1 uses. This does not
/// depend on the number of rows of any run.
class row_program {
 public:
  /// `at(rows, use)` calls `use(protocol)` with the protocol for a number of rows from 1 to
  /// `ends.back()`, the capacity. `ends` are in ascending order. No number of rows needs more
  /// memory or counters than the next end or an end before it. No room is used more than
  /// `most_uses` times in an epoch.
  template <class At>
  row_program(std::vector<std::int64_t> ends, std::uint64_t most_uses, At at)
      : ends_(std::move(ends)),
        most_uses_(most_uses),
        self_(std::make_shared<holder<At>>(std::move(at))) {
    for (const std::int64_t end : ends_) {
      const sizes s = self_->sizes_at(end);
      rank_ = s.rank;
      world_ = s.world;
      counters_of_set_ = std::max(counters_of_set_, s.counters);
      kernels_ = std::max(kernels_, s.kernels);
      inbox_ = larger(inbox_, s.inbox);
      outbox_ = larger(outbox_, s.outbox);
      tile_ = larger(tile_, s.tile);
      inbox_elements_ = std::max(inbox_elements_, s.inbox.rows * s.inbox.cols);
      outbox_elements_ = std::max(outbox_elements_, s.outbox.rows * s.outbox.cols);
    }
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world() const noexcept { return world_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return ends_.back(); }
  [[nodiscard]] const std::vector<std::int64_t>& ends() const noexcept { return ends_; }
  /// The number of counters of a rank, of all sets together.
  [[nodiscard]] int counters() const noexcept { return run_sets * (world_ + counters_of_set_); }
  /// The counter at every rank that rank `from` raises at the beginning of a run, to the run's
  /// turn.
  [[nodiscard]] int roll_call(int set, int from) const noexcept { return set * world_ + from; }
  /// The elements of one set, enough for any number of rows.
  [[nodiscard]] std::int64_t inbox_elements() const noexcept { return inbox_elements_; }
  [[nodiscard]] std::int64_t outbox_elements() const noexcept { return outbox_elements_; }
  /// The most rows and the most columns of a set, for any number of rows.
  [[nodiscard]] extent inbox() const noexcept { return inbox_; }
  [[nodiscard]] extent outbox() const noexcept { return outbox_; }
  [[nodiscard]] extent tile_extent() const noexcept { return tile_; }
  /// The largest number of kernels of a run.
  [[nodiscard]] int most_kernels() const noexcept { return kernels_; }

  /// The sizes of a run with some number of rows. Its matrices begin at the same places as those of
  /// its set.
  struct sizes {
    int rank = 0;
    int world = 1;
    int counters = 0;
    int kernels = 1;
    extent inbox;
    extent outbox;
    extent tile;
  };
  /// The sizes of a run with `rows` rows, from 0 to the capacity. A run without rows has one
  /// kernel.
  [[nodiscard]] sizes sizes_at(std::int64_t rows) const {
    return rows == 0 ? sizes{} : self_->sizes_at(rows);
  }
  [[nodiscard]] kernel kernel_at(std::int64_t rows, int i) const {
    return rows == 0 ? kernel{"roll call", 0, 1} : self_->kernel_at(rows, i);
  }
  /// Calls `emit` for every step of a worker in a run, in order. `kernels` is that of
  /// `sizes_at(rows)`. Throws `internal` if the protocol uses a room more than `most_uses` times.
  void steps(const row_run& run, int kernels, int kernel_index, int worker,
             const program::sink& emit) const {
    if (kernel_index == 0 && worker == 0) call(run, &step::publish, emit);
    if (run.rows > 0) {
      const counted count{counters_before(run), (run.turn() - 1) * most_uses_, most_uses_};
      self_->steps(run.rows, kernel_index, worker, count, emit);
    }
    if (kernel_index == kernels - 1 && worker == 0) call(run, &step::acquire, emit);
  }

 private:
  /// Maps the counters of a program to those of its set.
  struct counted {
    int first = 0;
    std::uint64_t used = 0;
    std::uint64_t most = 1;

    [[nodiscard]] room operator()(room r) const {
      if (!r.named()) return r;
      if (r.use > most) {
        throw error(errc::internal, "a run uses a room more often than its operator declared");
      }
      r.number += first;
      r.ready += first;
      if (r.free >= 0) r.free += first;
      r.use += used;
      return r;
    }
    [[nodiscard]] step operator()(const step& s) const {
      step t = s;
      // Rooms that are free before their first use need no wait: all ranks have left the set.
      t.reserve = s.reserve.needed_free() == 0 ? room{} : (*this)(s.reserve);
      t.acquire = (*this)(s.acquire);
      t.publish = (*this)(s.publish);
      t.retire = (*this)(s.retire);
      return t;
    }
  };
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual sizes sizes_at(std::int64_t rows) const = 0;
    [[nodiscard]] virtual kernel kernel_at(std::int64_t rows, int i) const = 0;
    virtual void steps(std::int64_t rows, int kernel_index, int worker, const counted& count,
                       const program::sink& emit) const = 0;
  };
  template <class At>
  struct holder final : base {
    explicit holder(At a) : at(std::move(a)) {}
    [[nodiscard]] sizes sizes_at(std::int64_t rows) const override {
      sizes s;
      at(rows, [&](const auto& p) {
        s = {p.rank(),  p.world(),  p.counters(),   p.kernels(),
             p.inbox(), p.outbox(), p.tile_extent()};
      });
      return s;
    }
    [[nodiscard]] kernel kernel_at(std::int64_t rows, int i) const override {
      kernel k;
      at(rows, [&](const auto& p) { k = p.kernel_at(i); });
      return k;
    }
    void steps(std::int64_t rows, int kernel_index, int worker, const counted& count,
               const program::sink& emit) const override {
      at(rows, [&](const auto& p) {
        p.program(kernel_index, worker, 1, [&](const step& s) { emit(count(s)); });
      });
    }
    At at;
  };

  [[nodiscard]] static extent larger(const extent& a, const extent& b) noexcept {
    return {std::max(a.rows, b.rows), std::max(a.cols, b.cols)};
  }
  [[nodiscard]] int counters_before(const row_run& run) const noexcept {
    return run_sets * world_ + run.set() * counters_of_set_;
  }
  /// Emits the flags of the roll call: to all other ranks, or from them.
  void call(const row_run& run, room step::*verb, const program::sink& emit) const {
    for (int peer = 0; peer < world_; ++peer) {
      if (peer == rank_) continue;
      const bool sends = verb == &step::publish;
      const int from = sends ? rank_ : peer;
      const int index = roll_call(run.set(), from);
      step s;
      s.*verb = {.producer = from,
                 .consumer = sends ? peer : rank_,
                 .number = index,
                 .ready = index,
                 .use = run.turn()};
      emit(s);
    }
  }

  std::vector<std::int64_t> ends_;
  std::uint64_t most_uses_;
  std::shared_ptr<const base> self_;
  int rank_ = 0;
  int world_ = 1;
  int counters_of_set_ = 0;
  int kernels_ = 1;
  extent inbox_;
  extent outbox_;
  extent tile_;
  std::int64_t inbox_elements_ = 0;
  std::int64_t outbox_elements_ = 0;
};

}  // namespace untax
