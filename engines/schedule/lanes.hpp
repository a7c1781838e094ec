#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <untax/tile/program.hpp>

#include "engines/schedule/walk.hpp"

namespace untax::schedule {

/// The work of a kernel's lanes, from which the time of a step follows. The checker does not use
/// it.
enum class lane_work : std::uint8_t {
  multiplies,  ///< CTAs of a GEMM, whose epilogues store and add while the CTAs go on multiplying
  sends,       ///< warps, CTAs or copy engines that move data before or after other lanes multiply
  adds,        ///< CTAs that add, or merge, partial results
  meets,       ///< CTAs that only wait for other ranks, and signal to them
};

/// The steps of the kernels of one rank in a run, lane by lane: a protocol for the schedule
/// checker, built from a plan. A lane is the program of one warp, or of one CTA.
///
/// Lanes of a rank also signal each other with flags. A flag either orders the accesses before it
/// and after it, as an atomic counter or a stream does; or it only makes a lane wait. The latter is
/// for roles of a CTA whose order must not be relied on.
class lane_program {
 public:
  /// Emits the steps of a lane in an epoch.
  using lane = std::function<void(std::uint64_t epoch, const program::sink& emit)>;
  /// The memory and counters of a rank, as its protocol declares them.
  struct rank_memory {
    int rank = 0;
    int world = 1;
    int counters = 0;
    extent inbox;
    extent outbox;
    extent tile;
  };

  explicit lane_program(const rank_memory& memory) : memory_(memory) {}

  /// Lanes added from here on belong to this kernel.
  void begin_kernel(const char* name, int stage, lane_work work) {
    kernels_.push_back({{name, stage, 0}, work, {}});
  }
  void add(lane what) {
    kernels_.back().lanes.push_back(std::move(what));
    ++kernels_.back().about.workers;
  }
  /// Adds a lane that first waits for flags, and raises one at its end; -1: none.
  void add(const std::vector<int>& behind, const lane& what, int raised = -1) {
    add([=, rank = memory_.rank](std::uint64_t epoch, const program::sink& emit) {
      for (const int flag : behind) emit(awaits(rank, flag, epoch));
      what(epoch, emit);
      if (raised >= 0) emit(raises(rank, raised, epoch));
    });
  }
  /// Adds `count` lanes `what(number, epoch, emit)`. Each first waits for the flags
  /// `behind[number]`, if there are any, and raises one at its end. Returns those.
  template <class What>
  std::vector<int> add_each(int count, const What& what,
                            std::vector<std::vector<int>> behind = {}) {
    behind.resize(static_cast<std::size_t>(count));
    std::vector<int> raised;
    for (int number = 0; number < count; ++number) {
      raised.push_back(add_flag());
      const auto steps = [=](std::uint64_t epoch, const program::sink& emit) {
        what(number, epoch, emit);
      };
      add(behind[static_cast<std::size_t>(number)], steps, raised.back());
    }
    return raised;
  }
  /// A new flag. All flags that only make lanes wait have to be added before those that order.
  [[nodiscard]] int add_flag(bool orders = true) {
    if (!orders) ++waits_only_;
    return memory_.counters + flags_++;
  }
  /// A new flag that orders, with which a lane leaves its sums of a tile to another lane. The lane
  /// that raised the flag has already multiplied this tile, so the steps of the other lane, up to
  /// the end of the tile, take no time.
  [[nodiscard]] int add_sums_flag() {
    leave_sums_.resize(static_cast<std::size_t>(flags_) + 1);
    leave_sums_.back() = true;
    return add_flag();
  }
  [[nodiscard]] bool leaves_sums(int counter) const {
    const int flag = counter - memory_.counters;
    return flag >= 0 && flag < static_cast<int>(leave_sums_.size()) &&
           leave_sums_[static_cast<std::size_t>(flag)];
  }
  /// The step with which a lane of a rank raises a flag, and the one with which it waits for it.
  [[nodiscard]] static step raises(int rank, int flag, std::uint64_t epoch) {
    step s;
    s.publish = room_of(rank, flag, epoch);
    return s;
  }
  [[nodiscard]] static step awaits(int rank, int flag, std::uint64_t epoch) {
    step s;
    s.acquire = room_of(rank, flag, epoch);
    return s;
  }
  /// Whether a flag of this rank orders accesses.
  [[nodiscard]] bool orders(int flag) const noexcept {
    return flag < memory_.counters || flag >= memory_.counters + waits_only_;
  }

  /// A program of several consecutive runs of one rank, with the same lanes and flags in each:
  /// epoch e is run e - 1. It owns the runs.
  [[nodiscard]] static lane_program in_turn(std::vector<lane_program> runs) {
    const lane_program& first = runs.front();
    lane_program all(first.memory_);
    for (int flag = first.memory_.counters; flag < first.counters(); ++flag)
      static_cast<void>(all.add_flag(first.orders(flag)));
    all.leave_sums_ = first.leave_sums_;
    const auto shared = std::make_shared<const std::vector<lane_program>>(std::move(runs));
    for (int i = 0; i < shared->front().kernels(); ++i) {
      const kernel about = shared->front().kernel_at(i);
      all.begin_kernel(about.name, about.stage, shared->front().work_of(i));
      for (int worker = 0; worker < about.workers; ++worker) {
        all.add([=](std::uint64_t epoch, const program::sink& emit) {
          (*shared)[static_cast<std::size_t>(epoch - 1)].program(i, worker, epoch, emit);
        });
      }
    }
    return all;
  }

  [[nodiscard]] int rank() const noexcept { return memory_.rank; }
  [[nodiscard]] int world() const noexcept { return memory_.world; }
  [[nodiscard]] int counters() const noexcept { return memory_.counters + flags_; }
  [[nodiscard]] extent inbox() const noexcept { return memory_.inbox; }
  [[nodiscard]] extent outbox() const noexcept { return memory_.outbox; }
  [[nodiscard]] extent tile_extent() const noexcept { return memory_.tile; }
  [[nodiscard]] int kernels() const noexcept { return static_cast<int>(kernels_.size()); }
  [[nodiscard]] kernel kernel_at(int i) const { return at(i).about; }
  [[nodiscard]] lane_work work_of(int kernel_index) const { return at(kernel_index).work; }
  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    at(kernel_index).lanes[static_cast<std::size_t>(worker)](epoch, emit);
  }

 private:
  struct launch {
    kernel about;
    lane_work work;
    std::vector<lane> lanes;
  };
  [[nodiscard]] const launch& at(int i) const { return kernels_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] static room room_of(int rank, int flag, std::uint64_t epoch) {
    return {.producer = rank, .consumer = rank, .number = flag, .ready = flag, .use = epoch};
  }

  rank_memory memory_;
  int flags_ = 0;
  int waits_only_ = 0;
  std::vector<bool> leave_sums_;  // by flag
  std::vector<launch> kernels_;
};

}  // namespace untax::schedule
