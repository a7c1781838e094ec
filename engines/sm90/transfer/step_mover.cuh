#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_ring.cuh>
#include <untax/tile/step.hpp>

#include "engines/sm90/transfer/moved_operands.hpp"
#include "engines/sm90/transfer/room_waits.cuh"
#include "engines/sm90/transfer/warp_copy.cuh"

namespace untax::sm90 {

/// A warp moves with its own loads and stores.
struct by_stores {
  __device__ static void move(std::uint16_t* to, std::int64_t to_stride, const std::uint16_t* from,
                              std::int64_t from_stride, std::int64_t rows, std::int64_t columns) {
    warp_copy::move(to, to_stride, from, from_stride, rows, columns);
  }
};

/// Its first thread drives the copy engine of the multiprocessor.
struct by_bulk_copies {
  bulk_ring<>& ring;

  __device__ void move(std::uint16_t* to, std::int64_t to_stride, const std::uint16_t* from,
                       std::int64_t from_stride, std::int64_t rows, std::int64_t columns) const {
    if (device_warp::thread_rank() > 0) return;
    const bool dense = to_stride == columns && from_stride == columns;
    ring.move({reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
               to_stride * 2, from_stride * 2, dense ? 1 : rows, (dense ? rows : 1) * columns * 2});
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
      wait(s.reserve.free, s.reserve.readers, s.reserve.needed_free(), s.reserve.consumer,
           s.reserve.number, verb::reserve);
    }
    if (s.acquire.named())
      wait(s.acquire.ready, 1, s.acquire.use, s.acquire.producer, s.acquire.number, verb::acquire);
    if (!going_) return;
    if (s.what == action::copy) {
      copier_.move(operands_.at(s.to), operands_.stride_of(s.to.of), operands_.at(s.from),
                   operands_.stride_of(s.from.of), s.rows, s.cols);
      unsignalled_ += s.rows * s.cols * 2;
    }
    if (s.publish.named()) signal(s.publish.consumer, s.publish.ready, s.publish.use);
    if (s.retire.named() && s.retire.free >= 0)
      signal(s.retire.producer, s.retire.free + s.reader, s.retire.use);
    if (unsignalled_ >= prompt_bytes) send();
  }
  /// After the last step.
  __device__ void finish() {
    if (going_) send();
  }

 private:
  static constexpr std::int64_t prompt_bytes = 16 << 10;
  static constexpr int most_held = 32;

  /// For counters of this rank, side by side.
  __device__ void wait(int first, int count, std::uint64_t expected, int peer, int room,
                       verb what) {
    const auto part = [&](int i) {
      return held_wait{
          run_.counters.local(static_cast<std::size_t>(first + i)), expected, 0, peer, room, what};
    };
    if (waits_.come(count, part)) return;
    send();
    going_ = waits_.await(count, part);
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
    __syncwarp();
    if (device_warp::thread_rank() < held_) cuda_memory::raise_release(*held_counter_, held_value_);
    held_ = 0;
    unsignalled_ = 0;
  }

  const moved_operands& operands_;
  const run_arguments& run_;
  Copier copier_;
  room_waits waits_;
  std::uint64_t* held_counter_ = nullptr;
  std::uint64_t held_value_ = 0;
  std::int64_t unsignalled_ = 0;  // bytes that peers have not been told of
  int held_ = 0;
  unsigned reserved_ = 0;  // a bit for each rank
  bool going_ = true;
};

}  // namespace untax::sm90
