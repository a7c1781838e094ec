#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/packets/layout.hpp"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

/// Packets with the same number of up to eight sources, which a lane looks at together. What it saw
/// stays in registers: data are taken from the very load that saw the epoch.
struct packet_column {
  static constexpr int most = 8;

  const packet* first = nullptr;  ///< that of source `first_source`
  std::int64_t apart = 0;         ///< packets between two sources
  int first_source = 0;
  unsigned wanted = 0;  ///< a bit for each source
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  std::uint64_t data[most] = {};

  /// 1 if all have come, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    std::uint64_t come = 1;
#pragma unroll
    for (int k = 0; k < most; ++k) {
      if ((wanted >> k & 1U) == 0) continue;
      const packet p = untax::detail::load_packet(first + k * apart);
      data[k] = p.data;
      if (p.epoch >= expected) continue;
      come = 0;
      seen = p.epoch;
      peer = first_source + k;
    }
    return come;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// One block of a collective by packets.
template <class Bits>
class packet_worker {
 public:
  __device__ packet_worker(const packet_layout& how, const run_arguments& run)
      : how_(how),
        run_(run),
        epoch_(run.epochs[blockIdx.x] + 1),
        first_(blockIdx.x * blockDim.x + threadIdx.x),
        step_(gridDim.x * blockDim.x),
        watch_(own_watch(run)) {}

  [[nodiscard]] __device__ int ranks() const noexcept { return how_.messages.ranks; }
  [[nodiscard]] __device__ int rank() const noexcept { return how_.messages.rank; }
  /// The first packet of the calling thread, and how far its packets are apart.
  [[nodiscard]] __device__ std::int64_t first() const noexcept { return first_; }
  [[nodiscard]] __device__ std::int64_t step() const noexcept { return step_; }

  [[nodiscard]] __device__ const Bits* in(const range& part) const noexcept {
    return reinterpret_cast<const Bits*>(run_.in) + part.begin;
  }
  [[nodiscard]] __device__ Bits* out(const range& part) const noexcept {
    return reinterpret_cast<Bits*>(run_.out) + part.begin;
  }

  /// Whether the block has any of a message of `count` elements.
  [[nodiscard]] __device__ bool has_part_of(std::int64_t count) const noexcept {
    return packets_for<Bits>(count) > std::int64_t{blockIdx.x} * blockDim.x;
  }

  /// Waits until partners that send nothing themselves have read what is to be overwritten.
  /// `gets(peer)` is how much comes back. By all threads.
  template <class Gets>
  [[nodiscard]] __device__ bool reserve(const Gets& gets) {
    if (epoch_ <= 2) return true;
    for (int begin = 0; begin < ranks(); begin += 32) {
      const int peer = begin + device_warp::thread_rank();
      const bool asks = peer < ranks() && peer != rank() &&
                        has_part_of(how_.messages.sent[peer].size) && !has_part_of(gets(peer));
      if (!__any_sync(0xffffffffU, asks)) continue;
      held_wait wait{nullptr, epoch_ - 2, 0, peer, counter_of(peer), verb::reserve};
      if (asks) wait.counter = run_.counters.local(static_cast<std::size_t>(counter_of(peer)));
      bool well = true;
      if (threadIdx.x < 32)
        well = wait_for_parts(wait, watch_, run_.operator_name()) == wait_outcome::ok;
      if (block_.any(!well)) return false;
    }
    return true;
  }

  /// Packet `i` of each message to its receiver, nearest first.
  __device__ void send(std::int64_t i) const {
    constexpr int at_once = packet_column::most;
    for (int begin = 1; begin < ranks(); begin += at_once) {
      std::uint64_t data[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int peer = at_hop(begin + k);
        if (begin + k >= ranks() || i >= packets_for<Bits>(how_.messages.sent[peer].size)) continue;
        const range& part = how_.messages.sent[peer];
        data[k] = untax::detail::pack(in(part), i, part.size);
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int peer = at_hop(begin + k);
        if (begin + k >= ranks() || i >= packets_for<Bits>(how_.messages.sent[peer].size)) continue;
        store(0, peer, i, data[k]);
      }
    }
  }
  /// The same data to everybody but `bystander`, as packet `i` of the second phase.
  __device__ void pass_on(std::int64_t i, std::uint64_t data, int bystander = -1) const {
    for (int hop = 1; hop < ranks(); ++hop) {
      if (at_hop(hop) != bystander) store(1, at_hop(hop), i, data);
    }
  }

  /// Waits for packet `i` of the sources `begin`, begin + 1, ..., up to eight, of those that
  /// `wants(source)` names. By all lanes of a warp.
  template <class Wants>
  [[nodiscard]] __device__ bool receive(int phase, int begin, std::int64_t i, const Wants& wants,
                                        packet_column& column) {
    column.first = slot(phase, rank(), begin, i);
    column.apart = how_.capacity;
    column.first_source = begin;
    column.expected = epoch_;
    column.room = static_cast<int>(i);
    column.wanted = 0;
#pragma unroll
    for (int k = 0; k < packet_column::most; ++k) {
      if (begin + k < ranks() && begin + k != rank() && wants(begin + k)) column.wanted |= 1U << k;
    }
    return wait_for_parts(column, watch_, run_.operator_name()) == wait_outcome::ok;
  }

  /// Receives all messages of a phase into their places in the result. By all threads.
  [[nodiscard]] __device__ bool collect(int phase) {
    return collect(phase, [&](int source) { return how_.messages.got[source].size; });
  }
  /// The same where `size_of(source)` elements come from a source in this phase.
  template <class SizeOf>
  [[nodiscard]] __device__ bool collect(int phase, const SizeOf& size_of) {
    const auto& got = how_.messages.got;
    for (std::int64_t warp = first_ - device_warp::thread_rank(); warp < how_.capacity;
         warp += step_) {
      const std::int64_t i = warp + device_warp::thread_rank();
      for (int begin = 0; begin < ranks(); begin += packet_column::most) {
        packet_column column;
        const auto wants = [&](int source) { return i < packets_for<Bits>(size_of(source)); };
        if (!receive(phase, begin, i, wants, column)) return false;
#pragma unroll
        for (int k = 0; k < packet_column::most; ++k) {
          if ((column.wanted >> k & 1U) == 0) continue;
          const range& part = got[begin + k];
          untax::detail::unpack(column.data[k], out(part), i, part.size);
        }
      }
    }
    return true;
  }

  /// By all threads: ends the epoch if all went `well`, and tells partners that are not told by
  /// messages. `gets(peer)` as above.
  template <class Gets>
  __device__ void finish(bool well, const Gets& gets) const {
    if (block_.any(!well)) return;
    for (int peer = static_cast<int>(threadIdx.x); peer < ranks();
         peer += static_cast<int>(blockDim.x)) {
      if (peer != rank() && has_part_of(gets(peer)) && !has_part_of(how_.messages.sent[peer].size))
        cuda_memory::raise_release(
            *run_.counters.at(peer, static_cast<std::size_t>(counter_of(rank()))), epoch_);
    }
    if (threadIdx.x == 0) run_.epochs[blockIdx.x] = epoch_;
  }

 private:
  [[nodiscard]] __device__ static device_watch own_watch(const run_arguments& run) {
    const device_watch watch(run.world, static_cast<int>(blockIdx.x));
    return threadIdx.x < 32 ? watch : watch.silent();
  }
  [[nodiscard]] __device__ int at_hop(int hop) const noexcept {
    const int peer = rank() + hop;
    return peer < ranks() ? peer : peer - ranks();
  }
  /// At the sender, the counter of this block and a receiver.
  [[nodiscard]] __device__ int counter_of(int receiver) const noexcept {
    return static_cast<int>(blockIdx.x) * ranks() + receiver;
  }
  [[nodiscard]] __device__ packet* slot(int phase, int at, int source,
                                        std::int64_t i) const noexcept {
    const auto set = static_cast<std::int64_t>(2 * phase) + static_cast<std::int64_t>(epoch_ & 1U);
    return reinterpret_cast<packet*>(run_.inbox.at(at)) + (set * ranks() + source) * how_.capacity +
           i;
  }
  __device__ void store(int phase, int peer, std::int64_t i, std::uint64_t data) const {
    untax::detail::store_packet(slot(phase, peer, rank(), i), {data, epoch_});
  }

  const packet_layout& how_;
  const run_arguments& run_;
  std::uint64_t epoch_;
  std::int64_t first_;
  std::int64_t step_;
  device_watch watch_;
  device_block block_;
};

/// A kernel of packets and what it needs.
template <class Bits>
[[nodiscard]] transfer_code packet_code(const void* kernel, const packet_layout& how, int blocks) {
  const auto ranks = static_cast<std::size_t>(how.messages.ranks);
  transfer_code code;
  code.kernel = kernel;
  code.first_argument = kernel_argument(how);
  code.blocks = {blocks};
  code.threads = packet_threads;
  code.inbox_bytes =
      (how.passes_on ? 4 : 2) * ranks * static_cast<std::size_t>(how.capacity) * sizeof(packet);
  code.counters = blocks * how.messages.ranks;
  code.element_bytes = sizeof(Bits);
  code.text = "packets";
  return code;
}

}  // namespace untax::sm90
