#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/core/reduction.hpp>

#include "engines/gpu/collectives/combine.cuh"
#include "engines/gpu/collectives/worker_warps.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/trace/kernel_events.cuh"

namespace untax::gpu {

/// A command of the control warp of a block to its worker warps.
struct command {
  enum class kind : std::uint8_t { leave, move, combine };

  kind what = kind::leave;
  /// Whether all worker warps have to finish all earlier commands first.
  bool after_all = false;
  reduction how = reduction::sum;
  std::int64_t amount = 0;          ///< bytes to move, elements to combine
  const std::byte* from = nullptr;  ///< source of a move
  addends parts;                    ///< sources of a combine
  combine_target to;
};

/// The ring of commands from the control warp to the worker warps, in shared memory. Each worker
/// warp executes the commands in order, independently of the other warps. The control warp can see
/// when all warps have finished a command.
struct command_board {
  static constexpr int slots = 8;

  command slot[slots];
  stage_barrier posted[slots];
  stage_barrier done[slots];

  /// Called by one thread, before the block synchronises.
  __device__ void init(int warps) {
    for (int i = 0; i < slots; ++i) {
      posted[i].init(1);
      done[i].init(static_cast<std::uint32_t>(warps));
    }
  }
};

/// The control warp's side. Called by all lanes of the control warp.
class command_queue {
 public:
  explicit __device__ command_queue(command_board& board) noexcept : board_(&board) {}

  /// The number of commands posted so far.
  [[nodiscard]] __device__ std::uint32_t posted() const noexcept { return posted_; }

  /// Posts a command. If all slots are in use, first waits until the oldest command is done.
  __device__ void post(const command& next) {
    if (posted_ - done_ == command_board::slots) await(done_ + 1);
    if (device_warp::thread_rank() == 0) {
      board_->slot[posting_.stage] = next;
      board_->posted[posting_.stage].arrive();
    }
    __syncwarp();
    posting_.advance<command_board::slots>();
    ++posted_;
  }
  /// Polls, then returns the number of commands that are known to be done.
  [[nodiscard]] __device__ std::uint32_t done() {
    // Each lane polls on its own, but all lanes must agree on the count.
    const auto next_has_ended = [&] {
      const bool ended =
          cuda::ptx::mbarrier_test_wait_parity(&board_->done[ending_.stage].word, ending_.parity);
      return __all_sync(0xffffffffU, ended) != 0;
    };
    while (done_ != posted_ && next_has_ended()) end_one();
    return done_;
  }
  /// Waits until `count` commands are done. Then the worker warps' writes for them are visible, and
  /// a later release covers them.
  __device__ void await(std::uint32_t count) {
    while (done_ < count) {
      board_->done[ending_.stage].wait(ending_.parity);
      end_one();
    }
  }

 private:
  __device__ void end_one() {
    ending_.advance<command_board::slots>();
    ++done_;
  }

  command_board* board_;
  ring_cursor posting_;
  ring_cursor ending_;
  std::uint32_t posted_ = 0;
  std::uint32_t done_ = 0;
};

/// The worker warps' side: executes commands until `leave`. Called by all worker warps.
template <class Element, class Sender>
__device__ void follow(const launch_trace& trace, command_board& board, Sender& sender) {
  using group = typename Sender::group;
  ring_cursor at;
  for (;;) {
    board.posted[at.stage].wait(at.parity);
    const command& next = board.slot[at.stage];
    if (next.what == command::kind::leave) return;
    if (next.after_all) group::sync();
    if (next.what == command::kind::move) {
      const action_note noted(trace, action::copy);
      sender.move(next.to.own, next.from, next.amount);
    } else if constexpr (!std::is_void_v<Element>) {
      const action_note noted(trace, action::reduce);
      combine<Element>(group(), next.how, next.to, next.parts, next.amount);
    }
    __syncwarp();
    if (device_warp::thread_rank() == 0) board.done[at.stage].arrive();
    at.template advance<command_board::slots>();
  }
}

}  // namespace untax::gpu
