#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <untax/core/process_owned.hpp>
#include <untax/flow/agreement.hpp>
#include <untax/flow/barrier.hpp>
#include <untax/world/placement.hpp>
#include <untax/world/world.hpp>

#include "device_monitor.hpp"
#include "dropped_objects.hpp"
#include "settings.hpp"
#include "share_exchange.hpp"

namespace untax {

/// The state of one rank behind a `world`. Its address must not change, since the heap reports to
/// its ledger.
struct world::member {
  member(std::shared_ptr<segment> memory_of_all, int rank_of_it, std::string_view kind_of_world,
         const settings& s, std::unique_ptr<liveness> alive_of_peers)
      : memory(std::move(memory_of_all)),
        state(memory->control(), memory->ranks()),
        rank(rank_of_it),
        kind(kind_of_world),
        wait_limit(s.wait_limit),
        ranks_per_gpu(s.ranks_per_gpu),
        alive(std::move(alive_of_peers)),
        ledger(state, rank),
        meeting(state, rank),
        drops(state, rank),
        heap(*memory, rank, s.heap_guards, [this](std::string_view call) { ledger.post(call); }),
        view(std::shared_ptr<member>(std::shared_ptr<member>(), this)) {}
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    if (forked()) {
      end_dropped();
      leave_devices_behind();
      return;
    }
    const bool badly = failed || unwinding();
    end_dropped();
    // A peer that sees this rank as finished relies on all of its signals, also those of kernels.
    if (!badly && memory->devices() != nullptr) memory->devices()->finish(rank);
    state.set_status(rank, badly ? rank_status::failed : rank_status::finished);
  }

  /// The views of all ranks of a new world of threads.
  [[nodiscard]] static std::vector<world> threads(int ranks, const settings& s);
  /// The views of all ranks of a new world of GPUs in this process.
  [[nodiscard]] static std::vector<world> local_gpus(int ranks, const settings& s);
  /// The world of this process and of the processes that it meets at the place of `p`. Collective.
  [[nodiscard]] static world meet_processes(const placement& p, settings s, const environment& env);
  [[nodiscard]] bool unwinding() const noexcept {
    return std::uncaught_exceptions() > exceptions_before;
  }
  /// Destroys the dropped objects, whose destructors meet no rank.
  void end_dropped() noexcept {
    leaving = true;
    forked() ? dropped.leave_all_behind() : dropped.end_all();
  }
  /// Whether this is the copy in a forked child process, which is not a rank.
  [[nodiscard]] bool forked() const noexcept { return generation != process_generation(); }
  /// Keeps the arenas and the monitor alive in a forked child, where CUDA and threads are gone.
  void leave_devices_behind() noexcept {
    if (memory->devices() == nullptr) return;
    leave_behind(new (std::nothrow) std::shared_ptr(std::move(memory)));
    leave_behind(new (std::nothrow) std::shared_ptr(std::move(monitor)));
  }

  std::shared_ptr<segment> memory;
  control state;
  int rank;
  std::string_view kind;
  std::chrono::milliseconds wait_limit;
  int ranks_per_gpu;
  std::unique_ptr<liveness> alive;  // null in a world of threads
  agreement ledger;
  rank_barrier meeting;
  drop_agreement drops;
  dropped_objects dropped;
  std::uint64_t objects = 0;  // number of objects that all ranks have made
  bool leaving = false;       // the rank is destroying its dropped objects, and meets no rank any
                              // more
  symmetric_heap heap;
  std::shared_ptr<device_monitor> monitor;  // null if the heaps are in host memory
  std::shared_ptr<share_exchange> offers;   // likewise
  std::uint64_t runs = 0;                   // number of runs of operators
  bool failed = false;
  int exceptions_before = std::uncaught_exceptions();
  std::uint64_t generation = process_generation();
  world view;
};

}  // namespace untax
