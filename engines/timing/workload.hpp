#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace untax::timing {

/// A counter at a rank that reaches a value.
struct signal {
  int rank = 0;
  int counter = 0;
  std::uint64_t value = 0;
};

/// The path of a signal.
enum class signal_way : std::uint8_t {
  released,  ///< a release: it arrives after all data before it
  inside,    ///< the data carry it
  at_once,   ///< no release: within a rank, where it arrives with the data
};

/// One activity of a worker: it waits, then computes or moves, then signals. All waits come first,
/// and signals go when the work is done.
struct activity {
  double busy = 0;         ///< seconds of computing
  double bytes = 0;        ///< bytes that it moves
  double pace = 0;         ///< bytes a second that this worker can move at most; 0: no limit
  double begin_after = 0;  ///< seconds until the move begins, the worker being busy
  int from = -1;           ///< the rank that has the bytes
  int to = -1;
  std::uint32_t first_wait = 0;
  std::uint32_t waits = 0;
  std::uint32_t first_raise = 0;
  std::uint32_t raises = 0;
  signal_way way = signal_way::released;
  bool detached = false;  ///< the worker goes on while its bytes are on their way
  bool posted = false;    ///< another agent waits until its bytes have arrived, and signals
};

struct timed_worker {
  int rank = 0;
  int kernel = 0;
  std::size_t first = 0;  ///< index of its first activity
  std::size_t count = 0;
};

/// Workers that start together, `launch` seconds after the start of their stage. A stage starts
/// when all kernels of the stage before it at the same rank have ended, or when the rank begins.
struct timed_kernel {
  int rank = 0;
  int stage = 0;
  std::string name;
  double launch = 0;
  double rate = 0;  ///< bytes a second that its workers send at most, all together; 0: no limit
};

/// The input of the simulation: the activities of all ranks, with their costs.
class workload {
 public:
  explicit workload(int ranks) : ranks_(ranks) {}

  int add_kernel(int rank, int stage, std::string name, double launch, double rate = 0) {
    kernels_.push_back({rank, stage, std::move(name), launch, rate});
    return static_cast<int>(kernels_.size()) - 1;
  }
  /// Adds a worker, to which the following activities belong.
  void add_worker(int kernel) {
    workers_.push_back(
        {kernels_[static_cast<std::size_t>(kernel)].rank, kernel, activities_.size(), 0});
  }
  /// Adds an activity, to which waits and signals added since the last activity belong.
  void act(activity a) {
    a.first_wait = waits_taken_;
    a.waits = static_cast<std::uint32_t>(waits_.size()) - waits_taken_;
    a.first_raise = raises_taken_;
    a.raises = static_cast<std::uint32_t>(raises_.size()) - raises_taken_;
    waits_taken_ = static_cast<std::uint32_t>(waits_.size());
    raises_taken_ = static_cast<std::uint32_t>(raises_.size());
    activities_.push_back(a);
    ++workers_.back().count;
  }
  void wait(signal s) { waits_.push_back(s); }
  void raise(signal s) { raises_.push_back(s); }
  /// Whether there are waits or signals that no activity has yet.
  [[nodiscard]] bool pending() const {
    return waits_taken_ < waits_.size() || raises_taken_ < raises_.size();
  }

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<timed_kernel>& kernels() const noexcept { return kernels_; }
  [[nodiscard]] const std::vector<timed_worker>& workers() const noexcept { return workers_; }
  [[nodiscard]] const std::vector<activity>& activities() const noexcept { return activities_; }
  [[nodiscard]] std::vector<activity>& activities() noexcept { return activities_; }
  [[nodiscard]] const std::vector<signal>& waits() const noexcept { return waits_; }
  [[nodiscard]] const std::vector<signal>& raises() const noexcept { return raises_; }

 private:
  int ranks_;
  std::vector<timed_kernel> kernels_;
  std::vector<timed_worker> workers_;
  std::vector<activity> activities_;
  std::vector<signal> waits_;
  std::vector<signal> raises_;
  std::uint32_t waits_taken_ = 0;
  std::uint32_t raises_taken_ = 0;
};

}  // namespace untax::timing
