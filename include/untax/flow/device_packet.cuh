#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/flow/device_wait.cuh>
#include <untax/flow/lanes_watch.cuh>
#include <untax/rma/packet.cuh>

namespace untax {

namespace detail {

/// Up to `most` packets that a lane loads together, `step` apart. Their data stay in registers, and
/// come from the very load that read the epoch. `order` is that of a lane's first packet; the first
/// packet of the message, which carries its order, is one of these.
template <int most, memory_order order>
struct packet_batch {
  const packet* first;
  std::int64_t step;
  int count;  // at least 1
  std::uint64_t data[most] = {};

  [[nodiscard]] __device__ std::uint64_t look() {
    const packet p = load_packet<order>(first);
    data[0] = p.data;
    std::uint64_t oldest = p.epoch;
#pragma unroll
    for (int i = 1; i < most; ++i) {
      if (i < count) {
        const packet other = load_packet(first + i * step);
        data[i] = other.data;
        oldest = other.epoch < oldest ? other.epoch : oldest;
      }
    }
    return oldest;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// The message that a group waits for.
struct message {
  const packet* from;
  std::int64_t packets;
  std::uint64_t epoch;
};

/// Receives at most `most` packets of a message, from `mine` on, `step` apart, together with the
/// other lanes.
template <int most, memory_order order, class G, class T>
[[nodiscard]] __device__ wait_outcome take_batch(G& group, device_watch& watch, T* to,
                                                 const message& m, std::int64_t count,
                                                 std::int64_t mine, const wait_site& site) {
  using memory = lanes_memory<G::lanes, packet_batch<most, order>>;
  using counter = typename memory::counter;
  const std::int64_t step = group.size();
  const bool has = mine < m.packets;
  int held = 1;
  if constexpr (most > 1) {
    const std::int64_t left = has ? (m.packets - mine + step - 1) / step : 1;
    held = left < most ? static_cast<int>(left) : most;
  }
  // A lane without a packet loads the last one, too: that is faster than a branch.
  counter all{{m.from + (has ? mine : m.packets - 1), step, held}, m.epoch};
  lanes_watch<G::lanes, counter> guard(watch, all, group.thread_rank() % G::lanes == 0);
  const wait_outcome outcome = wait_until<memory>(all, site, guard);
  if (outcome != wait_outcome::ok) return outcome;
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (has && i < held) unpack<T>(all.part.data[i], to, mine + i * step, count);
  }
  return outcome;
}

/// Waits for a message and copies its elements to their place.
template <memory_order order, class G, class T>
[[nodiscard]] __device__ wait_outcome take_message(G& group, T* to, const packet* from,
                                                   std::int64_t count, std::uint64_t epoch,
                                                   const awaited& who) {
  constexpr int most = 4;
  const message m{from, packets_for<T>(count), epoch};
  const wait_site site{who.name, verb::wait_until, who.peer, who.room, 1};
  const std::int64_t step = group.size();
  const int me = group.thread_rank();
  const int lane = me % G::lanes;
  // The first lanes publish the record of the whole group.
  device_watch watch = me < G::lanes ? group.guard() : group.guard().silent();
  wait_outcome outcome = wait_outcome::ok;
  if (m.packets <= step) {
    if (me - lane < m.packets) outcome = take_batch<1, order>(group, watch, to, m, count, me, site);
  } else {
    // All lanes take the same turns.
    for (std::int64_t begin = me - lane; begin < m.packets && outcome == wait_outcome::ok;
         begin += most * step)
      outcome = take_batch<most, order>(group, watch, to, m, count, begin + lane, site);
  }
  if constexpr (lockstep_group<G>) {
    group.sync();
    return outcome;
  }
  return agreed(group, outcome);
}

}  // namespace detail

/// Waits for the `count` elements that a peer sent by `send_packets` with `epoch`, and writes them
/// to `to`, which may be shared memory. All threads of the group call it. It returns how the wait
/// ended, the same to all threads; after `ok` all of them see all elements. It acquires nothing but
/// the message.
template <waiting_device_group G, packed_element T>
[[nodiscard]] __device__ wait_outcome receive_packets(G& group, T* to, const packet* from,
                                                      std::int64_t count, std::uint64_t epoch,
                                                      const awaited& who = {}) {
  return detail::take_message<memory_order::relaxed>(group, to, from, count, epoch, who);
}

/// Waits for the `count` elements that a peer sent to `mailbox` by `small_put_with_signal` with
/// `value`, and writes them to `to`. All threads of the group call it. It returns whether the
/// elements came, the same to all threads. Acquire, as `wait_until`: the group then sees the
/// elements, and all writes of the peer before them.
template <waiting_device_group G, packed_element T>
[[nodiscard]] __device__ bool receive_small_put(G& group, T* to, const packet* mailbox,
                                                std::int64_t count, std::uint64_t value,
                                                const awaited& who = {}) {
  return detail::take_message<memory_order::acquire>(group, to, mailbox, count, value, who) ==
         wait_outcome::ok;
}

}  // namespace untax
