#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/gpu/launch/operator_launcher.hpp"
#include "engines/gpu/rooms/partial_sums.hpp"
#include "engines/gpu/rooms/room_content.hpp"
#include "engines/gpu/rooms/room_pool.hpp"

namespace untax::gpu {

/// A room in the symmetric memory of all ranks that several plans of an operator use in turn. Each
/// plan has counters and epochs of its own. So a plan works as if the room were its own, provided
/// that it finds the room as it left it, or as at its beginning: nobody reads or writes it, and
/// words are zero. A hand-over establishes that. It is a kernel before the run, which looks up in
/// this GPU's memory which plan had the room last. If that is another plan, the kernel clears the
/// words that have to be zero and then meets the kernels of all peers: all of them have ended all
/// earlier runs, and no rank has begun this one. Ranks run the same plans in the same order,
/// whether launched or replayed from graphs, so all of them find the same answer.
///
/// The host launches no such kernel where it knows the answer: the last run was of the same plan,
/// in the same capture, or outside of captures if no graph with a run is left. Nor does it if all
/// plans of the room open it.
class shared_room {
 public:
  /// Collective.
  shared_room(world& w, const std::string& name, std::size_t bytes);

  [[nodiscard]] const symmetric<std::byte>& memory() const noexcept { return memory_; }
  /// The number of a new plan.
  [[nodiscard]] std::uint64_t add(room_content content) noexcept {
    if (content != room_content::opened) ++others_;
    return ++plans_;
  }
  /// Hands the first `bytes` bytes of the room over to a plan. This is the first launch of a run.
  void enter(std::uint64_t plan, room_content content, std::size_t bytes, whole_run& run,
             cudaStream_t on);
  /// No graph that has a run of the room's plans is replayed any more.
  void forget_captures() noexcept { was_captured_ = false; }

 private:
  [[nodiscard]] bool is_known(std::uint64_t plan, unsigned long long capture) const noexcept;
  void launch(std::uint64_t plan, room_content content, std::size_t bytes, cudaStream_t on) const;

  operator_launcher launcher_;
  symmetric<std::byte> memory_;
  run_arguments run_;
  std::uint64_t* state_ = nullptr;
  std::uint64_t plans_ = 0;   // plans that the room ever had
  std::uint64_t others_ = 0;  // plans among them that do not open it
  // The host's knowledge of the last run.
  std::uint64_t last_plan_ = 0;
  unsigned long long last_capture_ = 0;
  bool was_captured_ = false;  // any run was captured, and its graph may still exist
};

/// The inbox of a plan: memory of its own, or a shared room.
class plan_room {
 public:
  plan_room() = default;

  [[nodiscard]] const symmetric<std::byte>& memory() const noexcept { return memory_; }
  /// Begins a run: called before all its other launches.
  void enter(whole_run& run, cudaStream_t on) const {
    if (shared_) shared_->enter(plan_, content_, bytes_, run, on);
  }
  void forget_captures() const noexcept {
    if (shared_) shared_->forget_captures();
  }

 private:
  friend class room_pool;

  std::shared_ptr<shared_room> shared_;  // null: the memory is the operator's own
  symmetric<std::byte> memory_;
  std::uint64_t plan_ = 0;
  room_content content_ = room_content::opened;
  std::size_t bytes_ = 0;
};

class room_pool {
 public:
  room_pool(world& w, std::string_view name) : world_(&w), name_(name) {}

  /// Collective. The inbox of a plan whose other memory belongs to `own`. Plans are made from the
  /// largest to the smallest, so that one room fits all. `pool` may be null. Throws
  /// `out_of_memory`.
  [[nodiscard]] static plan_room take(room_pool* pool, operator_launcher& own, std::size_t bytes,
                                      room_content content);
  [[nodiscard]] std::shared_ptr<const partial_sums> partials(std::size_t bytes);

 private:
  [[nodiscard]] std::shared_ptr<shared_room> room_of(std::size_t bytes);

  world* world_;
  std::string name_;
  std::vector<std::weak_ptr<shared_room>> rooms_;  // those of plans that ended are gone
  std::weak_ptr<const partial_sums> partials_;     // the largest memory that a plan has asked for
};

}  // namespace untax::gpu
