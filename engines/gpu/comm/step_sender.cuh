#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/tile/step.hpp>

#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/copy/copiers.cuh"
#include "engines/gpu/copy/moved_operands.hpp"

namespace untax::gpu {

/// A warp that executes the copy steps of a program, with their verbs.
///
/// Signals of small chunks are deferred, so that one release serves several peers: until
/// `prompt_bytes` have been copied, or the warp would have to wait.
template <class Copier>
class step_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ step_sender(const moved_operands& operands, const Copier& copier, int slot)
      : operands_(operands), run_(operands.run), copier_(copier), waits_(operands.run, slot) {}

  /// Executes a step: programs emit to this.
  __device__ void operator()(const step& s) {
    if (!going_) return;
    const unsigned bit = s.reserve.named() ? 1U << s.reserve.consumer : 0;
    // A rank's readers are the same for all of its rooms, so one reserve per rank is enough.
    if (s.reserve.free >= 0 && s.reserve.needed_free() > 0 && (reserved_ & bit) == 0) {
      reserved_ |= bit;
      for (int i = 0; i < s.reserve.readers; ++i) hold(reserving(run_, s.reserve, i));
    }
    if (s.acquire.named()) hold(acquiring(run_, s.acquire));
    if (s.what == action::none && !s.publish.named() && !s.retire.named()) return;
    wait();
    if (!going_) return;
    if (s.what == action::copy) {
      const auto to_here = [&](int /*copy*/) { return operands_.at(s.to); };
      copier_.move(1, to_here, operands_.stride_of(s.to.of), operands_.at(s.from),
                   operands_.stride_of(s.from.of), s.rows, s.cols);
      unsignalled_ += s.rows * s.cols * 2;
    }
    if (s.publish.named()) signal(s.publish.consumer, s.publish.ready, s.publish.use);
    if (s.retire.named() && s.retire.free >= 0)
      signal(s.retire.producer, s.retire.free + s.reader, s.retire.use);
    if (unsignalled_ >= prompt_bytes) send();
  }
  /// To be called after the last step.
  __device__ void finish() {
    wait();
    if (going_) send();
    copier_.complete();
  }

 private:
  static constexpr std::int64_t prompt_bytes = 64 << 10;
  static constexpr int most_held = 32;

  /// Defers a wait. All deferred waits are executed together, before the next action.
  __device__ void hold(const pending_wait& what) {
    if (pending_waits_.full()) wait();
    pending_waits_.add(what);
  }
  __device__ void wait() {
    if (pending_waits_.empty()) return;
    if (!pending_waits_.are_over()) {
      send();
      going_ = going_ && waits_.await(pending_waits_.most,
                                      [&](int /*lane*/) { return pending_waits_.mine(); });
    }
    pending_waits_.clear();
  }

  /// Defers a signal: lane i holds signal number i.
  __device__ void signal(int rank, int index, std::uint64_t value) {
    if (held_ == most_held) send();
    if (device_warp::thread_rank() == held_) {
      held_counter_ = run_.counters.at(rank, static_cast<std::size_t>(index));
      held_value_ = value;
    }
    ++held_;
  }
  /// Sends the deferred signals, and releases everything that any thread of the warp has written.
  __device__ void send() {
    if (held_ == 0) return;
    copier_.complete();
    __syncwarp();
    if (device_warp::thread_rank() < held_)
      cuda_memory::raise_release(noted_signal(run_, *held_counter_, held_value_), held_value_);
    held_ = 0;
    unsignalled_ = 0;
  }

  const moved_operands& operands_;
  const run_arguments& run_;
  Copier copier_;
  warp_channel waits_;
  pending_waits pending_waits_;
  std::uint64_t* held_counter_ = nullptr;
  std::uint64_t held_value_ = 0;
  std::int64_t unsignalled_ = 0;  // bytes that are not published yet
  int held_ = 0;
  unsigned reserved_ = 0;  // a bit for each rank
  bool going_ = true;
};

}  // namespace untax::gpu
