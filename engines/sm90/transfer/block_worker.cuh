#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/tile/step.hpp>

#include "engines/sm90/transfer/combine.cuh"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

/// One block of a rank: carries out the steps of its program, verbs and action. All its threads
/// take every step.
///
/// Two things differ from carrying steps out one by one, and neither can be seen by a peer that
/// only waits: waits are put off until a step acts, and then waited for together; signals are put
/// off until the block would have to wait, so that a round to all peers takes one release. Nobody
/// starves of it, since a block that holds signals is one that goes on.
///
/// `Element` is void where nothing is combined.
template <class Element, class Mover>
class block_worker {
 public:
  __device__ block_worker(const run_arguments& run, Mover& mover, held_verbs& held,
                          std::int64_t inbox_stride)
      : run_(run),
        mover_(mover),
        inbox_stride_(inbox_stride),
        epoch_(run.epochs[blockIdx.x] + 1),
        waits_(held),
        signals_(held) {}

  [[nodiscard]] __device__ std::uint64_t epoch() const noexcept { return epoch_; }

  __device__ void take(const step& s) {
    if (!going_) return;
    if (s.reserve.named()) reserve(s.reserve);
    if (s.acquire.named()) acquire(s.acquire);
    const bool acts = s.what != action::none || s.publish.named() || s.retire.named();
    if (!acts || !settle()) return;
    perform(s);
    if (s.publish.named()) {
      signal(s.publish.consumer, s.publish.ready, s.publish.use);
      prompt_ = prompt_ || s.prompt;
    }
    if (s.retire.named() && s.retire.free >= 0)
      signal(s.retire.producer, s.retire.free + s.reader, s.retire.use);
  }

  /// After the last step.
  __device__ void finish() {
    if (going_) going_ = settle();
    block_.sync();
    if (!going_) return;
    signals_.send();
    if (block_.thread_rank() == 0) run_.epochs[blockIdx.x] = epoch_;
  }

 private:
  __device__ void reserve(const room& r) {
    if (r.free < 0 || r.needed_free() == 0) return;
    for (int reader = 0; reader < r.readers; ++reader)
      hold({run_.counters.local(static_cast<std::size_t>(r.free + reader)), r.needed_free(), 0,
            r.consumer, r.number, verb::reserve});
  }
  __device__ void acquire(const room& r) {
    hold({run_.counters.local(static_cast<std::size_t>(r.ready)), r.use, 0, r.producer, r.number,
          verb::acquire});
  }
  __device__ void hold(const held_wait& wait) {
    if (waits_.full() && !settle()) return;
    waits_.add(wait);
  }
  /// Whether all waits that were put off have ended well.
  __device__ bool settle() {
    if (waits_.empty()) return true;
    if (!waits_.are_over(block_)) {
      send();
      going_ = waits_.wait(block_, run_);
    }
    waits_.clear();
    scattered_ = false;
    return going_;
  }

  __device__ void signal(int rank, int counter, std::uint64_t value) {
    if (signals_.full()) {
      block_.sync();
      send();
      scattered_ = false;
    }
    signals_.add(run_.counters.at(rank, static_cast<std::size_t>(counter)), value);
  }

  /// All threads of the block have been synchronised since their last stores.
  __device__ void send() {
    signals_.send();
    prompt_ = false;
  }

  __device__ void perform(const step& s) {
    if (s.what == action::none) return;
    if (prompt_) {
      if (scattered_) block_.sync();
      send();
      scattered_ = false;
    }
    // A result that is passed on was written by other threads.
    if (s.from.of == operand::c && scattered_) block_.sync();
    scattered_ = true;
    if (s.what == action::copy) {
      std::byte* to = at(s.to);
      const std::byte* from = at(s.from);
      if (to != from) mover_.move(to, from, s.cols * run_.element_bytes);
    }
    if constexpr (!std::is_void_v<Element>) {
      if (s.what == action::reduce) {
        const bool direct = s.from.of == operand::a;
        place first = s.from;
        if (direct) first.rank = 0;
        const addends all{at(first), direct ? run_.between : inbox_stride_ * run_.element_bytes,
                          at(s.weights), static_cast<int>(s.depth), s.from.rank};
        combine<Element>(s.combine, at(s.to), all, s.cols);
      }
    }
  }

  [[nodiscard]] __device__ std::byte* at(const place& p) const {
    if (p.of != operand::inbox) {
      std::byte* const own = p.of == operand::a ? const_cast<std::byte*>(run_.in) : run_.out;
      return own + (p.rank - run_.world.rank) * run_.between + p.col * run_.element_bytes;
    }
    return run_.inbox.at(p.rank) + (p.row * inbox_stride_ + p.col) * run_.element_bytes;
  }

  const run_arguments& run_;
  Mover& mover_;
  std::int64_t inbox_stride_;
  std::uint64_t epoch_;
  device_block block_;
  held_waits waits_;
  held_signals signals_;
  bool going_ = true;
  bool prompt_ = false;     // a signal that was put off is waited for
  bool scattered_ = false;  // threads have written what others have not been told of
};

}  // namespace untax::sm90
