#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_ring.cuh>
#include <untax/tile/step.hpp>

#include "engines/sm90/transfer/held_waits.cuh"
#include "engines/sm90/transfer/moved_operands.hpp"
#include "engines/sm90/transfer/room_waits.cuh"
#include "engines/sm90/transfer/warp_copy.cuh"

namespace untax::sm90 {

/// Where copies of a piece go that is sent to several ranks in turn, the last of which is that of
/// the step.
class targets {
 public:
  __device__ targets(const moved_operands& operands, const step& s, int copies)
      : operands_(operands),
        to_(s.to),
        before_(s.to.rank - copies + 1 + operands.run.world.ranks) {}

  __device__ std::uint16_t* operator()(int copy) const {
    place to = to_;
    to.rank = (before_ + copy) % operands_.run.world.ranks;
    return operands_.at(to);
  }

 private:
  const moved_operands& operands_;
  place to_;
  int before_;
};

/// A warp moves with its own loads and stores.
struct by_stores {
  static constexpr std::int64_t prompt_bytes = 16 << 10;

  /// Whether a piece goes to all peers before the next one does: then it is read once, and written
  /// when the step for the last peer comes.
  bool spreads = false;

  __device__ void move(const moved_operands& operands, const step& s, int copies) const {
    warp_copy::spread(copies, targets(operands, s, copies), operands.stride_of(s.to.of),
                      operands.at(s.from), operands.stride_of(s.from.of), s.rows, s.cols);
  }
  __device__ static void complete() {}
};

/// Its first thread drives the copy engine of the multiprocessor.
template <class Ring>
struct by_bulk_copies {
  static constexpr std::int64_t prompt_bytes = 64 << 10;

  Ring& ring;
  bool spreads = false;

  __device__ void move(const moved_operands& operands, const step& s, int copies) const {
    if (device_warp::thread_rank() > 0) return;
    const std::int64_t to_stride = operands.stride_of(s.to.of);
    const std::int64_t from_stride = operands.stride_of(s.from.of);
    const bool dense = to_stride == s.cols && from_stride == s.cols;
    const targets to(operands, s, copies);
    ring.post({nullptr, reinterpret_cast<const std::byte*>(operands.at(s.from)), to_stride * 2,
               from_stride * 2, dense ? 1 : s.rows, (dense ? s.rows : 1) * s.cols * 2},
              copies, [&](int copy) { return reinterpret_cast<std::byte*>(to(copy)); });
  }
  __device__ void complete() const {
    if (device_warp::thread_rank() == 0) ring.finish();
  }
};

/// A warp that carries out the steps of a program that only move: verbs around copies.
///
/// Signals of small pieces are put off, so that one release serves several peers, until so many
/// bytes have been moved or the warp would have to wait.
template <class Copier>
class step_mover {
 public:
  /// `slot` names the wait record of the warp.
  __device__ step_mover(const moved_operands& operands, const Copier& copier, int slot)
      : operands_(operands), run_(operands.run), copier_(copier), waits_(operands.run, slot) {}

  /// Takes a step: what programs emit to.
  __device__ void operator()(const step& s) {
    if (!going_) return;
    const unsigned bit = s.reserve.named() ? 1U << s.reserve.consumer : 0;
    // A rank's readers are the same for all of its rooms, so once for each rank is enough.
    if (s.reserve.free >= 0 && s.reserve.needed_free() > 0 && (reserved_ & bit) == 0) {
      reserved_ |= bit;
      for (int i = 0; i < s.reserve.readers; ++i)
        hold({run_.counters.local(static_cast<std::size_t>(s.reserve.free + i)),
              s.reserve.needed_free(), 0, s.reserve.consumer, s.reserve.number, verb::reserve});
    }
    if (s.acquire.named())
      hold({run_.counters.local(static_cast<std::size_t>(s.acquire.ready)), s.acquire.use, 0,
            s.acquire.producer, s.acquire.number, verb::acquire});
    if (s.what == action::copy && copier_.spreads && s.to.rank != last_peer()) {
      ++postponed_;
      return;
    }
    if (s.what == action::none && !s.publish.named() && !s.retire.named()) return;
    wait();
    if (!going_) return;
    if (s.what == action::copy) {
      copier_.move(operands_, s, postponed_ + 1);
      unsignalled_ += s.rows * s.cols * 2 * (postponed_ + 1);
    }
    if (s.publish.named()) {
      for (int i = postponed_; i >= 0; --i) {
        const int peer = (s.publish.consumer - i + run_.world.ranks) % run_.world.ranks;
        signal(peer, s.publish.ready, s.publish.use);
      }
    }
    postponed_ = 0;
    if (s.retire.named() && s.retire.free >= 0)
      signal(s.retire.producer, s.retire.free + s.reader, s.retire.use);
    if (unsignalled_ >= Copier::prompt_bytes) send();
  }
  /// After the last step.
  __device__ void finish() {
    wait();
    if (going_) send();
    copier_.complete();
  }

 private:
  static constexpr int most_held = 32;

  /// To whom a piece goes last.
  [[nodiscard]] __device__ int last_peer() const {
    return (run_.world.rank + run_.world.ranks - 1) % run_.world.ranks;
  }

  /// Waits of a piece are for several peers: before the next action all are looked at together.
  __device__ void hold(const held_wait& what) {
    if (held_waits_.full()) wait();
    held_waits_.add(what);
  }
  __device__ void wait() {
    if (held_waits_.empty()) return;
    if (!held_waits_.are_over()) {
      send();
      going_ = going_ &&
               waits_.await(held_waits_.most, [&](int /*lane*/) { return held_waits_.mine(); });
    }
    held_waits_.clear();
  }

  /// Lane i holds the signal number i.
  __device__ void signal(int rank, int index, std::uint64_t value) {
    if (held_ == most_held) send();
    if (device_warp::thread_rank() == held_) {
      held_counter_ = run_.counters.at(rank, static_cast<std::size_t>(index));
      held_value_ = value;
    }
    ++held_;
  }
  /// Release, after everything that any thread of the warp has written.
  __device__ void send() {
    if (held_ == 0) return;
    copier_.complete();
    __syncwarp();
    if (device_warp::thread_rank() < held_) cuda_memory::raise_release(*held_counter_, held_value_);
    held_ = 0;
    unsignalled_ = 0;
  }

  const moved_operands& operands_;
  const run_arguments& run_;
  Copier copier_;
  room_waits waits_;
  held_waits held_waits_;
  std::uint64_t* held_counter_ = nullptr;
  std::uint64_t held_value_ = 0;
  std::int64_t unsignalled_ = 0;  // bytes that peers have not been told of
  int held_ = 0;
  int postponed_ = 0;      // copies of a piece
  unsigned reserved_ = 0;  // a bit for each rank
  bool going_ = true;
};

}  // namespace untax::sm90
