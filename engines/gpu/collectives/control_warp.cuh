#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/tile/step.hpp>

#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/collectives/commands.cuh"

namespace untax::gpu {

/// Signals that are deferred, in order, until the worker warps have finished all earlier commands.
/// One per lane, so that one release serves several peers. Called by all lanes of the control warp.
class pending_signals : trace_ref {
 public:
  static constexpr int most = 32;

  explicit __device__ pending_signals(const launch_trace& trace) : trace_ref(trace) {}

  [[nodiscard]] __device__ bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] __device__ bool full() const noexcept { return count_ == most; }
  /// Defers a signal until `after` commands are done; `after` never decreases between signals.
  __device__ void add(std::uint64_t* counter, std::uint64_t value, std::uint32_t after) {
    if (device_warp::thread_rank() == (first_ + count_) % most) {
      counter_ = counter;
      value_ = value;
      after_ = after;
    }
    ++count_;
  }
  /// The number of commands that must be done before the oldest signal is sent.
  [[nodiscard]] __device__ std::uint32_t first_after() const {
    return __shfl_sync(0xffffffffU, after_, first_);
  }
  /// Sends, with release, the signals that need no more than `done` commands.
  __device__ void send(std::uint32_t done) {
    const int turn = (device_warp::thread_rank() - first_ + most) % most;
    const bool ready = turn < count_ && after_ <= done;
    if (ready) cuda_memory::raise_release(noted_signal(get(), *counter_, value_), value_);
    const int sent = __popc(__ballot_sync(0xffffffffU, ready));
    first_ = (first_ + sent) % most;
    count_ -= sent;
  }

 private:
  std::uint64_t* counter_ = nullptr;  // per lane, like the next two
  std::uint64_t value_ = 0;
  std::uint32_t after_ = 0;
  int first_ = 0;  // lane of the oldest signal
  int count_ = 0;
};

/// One lane's part in a wait of the control warp. Every poll also sends the pending signals that
/// have become due, so that no peer waits for a signal that is held back here.
struct conducted_wait : pending_wait {
  pending_signals signals;
  command_queue commands;

  [[nodiscard]] __device__ std::uint64_t look() {
    if (!signals.empty()) signals.send(commands.done());
    return pending_wait::look();
  }
};

/// Not inlined: it is called rarely, and its registers would add to those of the caller.
[[nodiscard]] __device__ __noinline__ inline wait_outcome wait_in_warp(const run_arguments& run,
                                                                       conducted_wait& mine) {
  device_watch watch(run.world, static_cast<int>(blockIdx.x));
  return wait_for_parts(mine, watch, run, run.operator_name());
}

/// The warp of a block that runs the steps of a worker's program. It executes the verbs itself and
/// posts the actions to the worker warps as commands. So data move while it waits, and while a
/// release waits for earlier data. All of its lanes take every step.
///
/// Two things differ from executing the steps one by one; peers, which only wait, observe neither.
/// Waits are deferred until a step acts or signals, and are then polled together. A signal is
/// deferred until the worker warps have finished all earlier commands. The control warp then sends
/// it, together with other signals that are due, when it next posts a command or waits.
class control_warp {
 public:
  __device__ control_warp(const run_arguments& run, command_board& board, std::int64_t inbox_stride)
      : run_(run),
        inbox_stride_(inbox_stride),
        epoch_(run.epochs[blockIdx.x] + 1),
        commands_(board),
        signals_(run) {}

  [[nodiscard]] __device__ std::uint64_t epoch() const noexcept { return epoch_; }

  // Inlined: at a call site most fields of a step are known to be empty, so no step has to be kept
  // in local memory, which the worker warps' traffic would evict from the cache.
  __device__ __forceinline__ void take(const step& s) {
    if (!going_) return;
    if (s.reserve.named()) reserve(s.reserve);
    if (s.acquire.named()) acquire(s.acquire);
    const bool acts = s.what != action::none || s.publish.named() || s.retire.named();
    if (!acts || !settle()) return;
    perform(s);
    if (s.publish.named()) signal(s.publish.consumer, s.publish.ready, s.publish.use);
    if (s.retire.named() && s.retire.free >= 0)
      signal(s.retire.producer, s.retire.free + s.reader, s.retire.use);
  }

  /// Called after the last step.
  __device__ void finish() {
    if (going_) going_ = settle();
    if (going_) send_all();
    commands_.post({});
    if (going_ && device_warp::thread_rank() == 0) run_.epochs[blockIdx.x] = epoch_;
  }

 private:
  __device__ void reserve(const room& r) {
    if (r.free < 0 || r.needed_free() == 0) return;
    for (int reader = 0; reader < r.readers; ++reader) hold(reserving(run_, r, reader));
  }
  __device__ void acquire(const room& r) { hold(acquiring(run_, r)); }
  __device__ void hold(const pending_wait& wait) {
    if (waits_.full() && !settle()) return;
    waits_.add(wait);
  }
  /// Completes the deferred waits. Returns whether all of them succeeded.
  __device__ bool settle() {
    if (waits_.empty()) return true;
    if (!waits_.are_over()) {
      // Copies, since objects that are passed by reference cannot stay in registers.
      conducted_wait waiting{waits_.mine(), signals_, commands_};
      going_ = wait_in_warp(run_, waiting) == wait_outcome::ok;
      __syncwarp();  // a vote does not order memory
      signals_ = waiting.signals;
      commands_ = waiting.commands;
    }
    waits_.clear();
    return going_;
  }

  __device__ void signal(int rank, int counter, std::uint64_t value) {
    if (signals_.full()) send_first();
    signals_.add(run_.counters.at(rank, static_cast<std::size_t>(counter)), value,
                 commands_.posted());
  }
  __device__ void send_first() {
    const std::uint32_t after = signals_.first_after();
    commands_.await(after);
    signals_.send(after);
  }
  __device__ void send_all() {
    while (!signals_.empty()) send_first();
  }

  __device__ void perform(const step& s) {
    command next;
    next.to.own = at(s.to);
    if (s.what == action::copy) {
      next.what = command::kind::move;
      next.from = at(s.from);
      next.amount = s.cols * run_.element_bytes;
      if (next.to.own == next.from) return;
      next.after_all =
          s.from.of == operand::c && wrote_result_ || s.from.of == operand::inbox && wrote_inbox_;
    } else if (s.what == action::reduce) {
      next.what = command::kind::combine;
      next.how = s.combine;
      next.amount = s.cols;
      next.parts = parts_of(s);
      if (s.everywhere) next.to.between = between(s.to.of);
      // Earlier commands may still copy from the memory that this command overwrites.
      next.after_all =
          s.to.of == operand::c && read_input_ || s.to.of == operand::inbox && read_inbox_;
    } else {
      return;
    }
    if (next.after_all) wrote_result_ = wrote_inbox_ = read_input_ = read_inbox_ = false;
    const bool is_own = s.everywhere || s.to.rank == run_.world.rank;
    wrote_result_ = wrote_result_ || s.to.of == operand::c && is_own;
    wrote_inbox_ = wrote_inbox_ || s.to.of == operand::inbox && is_own;
    read_input_ = read_input_ || s.what == action::copy && s.from.of == operand::a;
    read_inbox_ = read_inbox_ || s.what == action::copy && s.from.of == operand::inbox;
    commands_.post(next);
    if (!signals_.empty()) signals_.send(commands_.done());
  }

  [[nodiscard]] __device__ addends parts_of(const step& s) const {
    const bool direct = s.from.of == operand::a;
    place first = s.from;
    if (direct) first.rank = 0;
    return {at(first), direct ? run_.between : inbox_stride_ * run_.element_bytes, at(s.weights),
            static_cast<int>(s.depth), s.from.rank};
  }

  /// Bytes from a place of an operand to the same place at the next rank.
  [[nodiscard]] __device__ std::int64_t between(operand of) const {
    return of == operand::inbox ? run_.inbox.at(1) - run_.inbox.at(0) : run_.between;
  }
  [[nodiscard]] __device__ std::byte* at(const place& p) const {
    if (p.of != operand::inbox) {
      std::byte* const own = p.of == operand::a ? const_cast<std::byte*>(run_.in) : run_.out;
      return own + (p.rank - run_.world.rank) * run_.between + p.col * run_.element_bytes;
    }
    return run_.inbox.at(p.rank) + (p.row * inbox_stride_ + p.col) * run_.element_bytes;
  }

  const run_arguments& run_;
  std::int64_t inbox_stride_;
  std::uint64_t epoch_;
  command_queue commands_;
  pending_waits waits_;
  pending_signals signals_;
  bool going_ = true;
  // Accesses to this rank's own memory by the commands since the last one with `after_all`.
  bool wrote_result_ = false;
  bool wrote_inbox_ = false;
  bool read_input_ = false;
  bool read_inbox_ = false;
};

}  // namespace untax::gpu
