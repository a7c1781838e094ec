#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/flow/device_wait.cuh>
#include <untax/flow/lanes_watch.cuh>
#include <untax/rma/packet.cuh>

namespace untax {

namespace detail {

/// Packets that a lane looks at together, `step` apart. What it saw stays in registers, so data are
/// taken from the very load that saw the epoch.
struct packet_batch {
  static constexpr int most = 4;

  const packet* first;
  std::int64_t step;
  int count;
  std::uint64_t otherwise;  // what a lane without packets has seen
  std::uint64_t data[most] = {};

  [[nodiscard]] __device__ std::uint64_t look() {
    std::uint64_t oldest = otherwise;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i < count) {
        const packet p = load_packet(first + i * step);
        data[i] = p.data;
        oldest = p.epoch < oldest ? p.epoch : oldest;
      }
    }
    return oldest;
  }
  __device__ void raise(std::uint64_t value) noexcept { otherwise = value; }
};

}  // namespace detail

/// Waits for the `count` elements that a peer sent with send_packets and `epoch`, and writes them
/// to `to`, which may be shared memory. Returns how the wait ended; all threads of the group get
/// the same, and after `ok` all see all elements. It acquires nothing but the message.
template <waiting_device_group G, packed_element T>
[[nodiscard]] __device__ wait_outcome receive_packets(G& group, T* to, const packet* from,
                                                      std::int64_t count, std::uint64_t epoch,
                                                      const awaited& who = {}) {
  using detail::packet_batch;
  using memory = detail::lanes_memory<G::lanes, packet_batch>;
  using counter = typename memory::counter;
  const std::int64_t packets = packets_for<T>(count);
  const std::int64_t step = group.size();
  const int me = group.thread_rank();
  const int lane = me % G::lanes;
  // The first threads in step publish the record of the whole group.
  device_watch watch = me < G::lanes ? group.guard() : group.guard().silent();
  wait_outcome outcome = wait_outcome::ok;
  // All threads in step take the same turns.
  for (std::int64_t begin = me - lane; begin < packets && outcome == wait_outcome::ok;
       begin += packet_batch::most * step) {
    const std::int64_t mine = begin + lane;
    const std::int64_t left = mine < packets ? (packets - mine + step - 1) / step : 0;
    const int held = left < packet_batch::most ? static_cast<int>(left) : packet_batch::most;
    counter all{{from + mine, step, held, epoch}, epoch};
    detail::lanes_watch<G::lanes, counter> guard(watch, all, lane == 0);
    const wait_site site{who.name, verb::wait_until, who.peer, who.room, epoch};
    outcome = wait_until<memory>(all, site, guard);
    if (outcome != wait_outcome::ok) break;
#pragma unroll
    for (int i = 0; i < packet_batch::most; ++i) {
      if (i < held) detail::unpack<T>(all.part.data[i], to, mine + i * step, count);
    }
  }
  return detail::agreed(group, outcome);
}

}  // namespace untax
