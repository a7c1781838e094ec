#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/rma/packet.cuh>

#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/packets/layout.hpp"

namespace untax::gpu {

/// Eight packets that a lane sends or polls together, which takes only as long as for one packet:
/// `depth` packets for each of `peers` consecutive peers.
template <int depth>
struct packet_batch {
  static constexpr int most = 8;
  static constexpr int peers = most / depth;
  static_assert(peers * depth == most);
};

/// A lane's wait for a batch. Data stay in registers: they are taken from the same load that saw
/// the epoch.
template <int depth>
struct packet_column : packet_batch<depth> {
  using packet_batch<depth>::most;

  const packet* first = nullptr;  ///< the first packet of source `first_source`
  std::int64_t apart = 0;         ///< packets from one source to the next
  std::int64_t step = 0;          ///< packets from one wanted packet of a source to the next
  int first_source = 0;
  unsigned wanted = 0;  ///< a bit for each packet of the batch
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  std::uint64_t data[most] = {};

  /// Returns 1 if all wanted packets have arrived, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    std::uint64_t arrived = 1;
#pragma unroll
    for (int k = 0; k < most; ++k) {
      if ((wanted >> k & 1U) == 0) continue;
      const packet p = untax::detail::load_packet(first + k / depth * apart + k % depth * step);
      data[k] = p.data;
      if (p.epoch >= expected) continue;
      arrived = 0;
      seen = p.epoch;
      peer = first_source + k / depth;
    }
    return arrived;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// One block of a collective whose data carry their own flag.
class packet_block {
 public:
  __device__ packet_block(const packet_layout& how, const run_arguments& run)
      : how_(how), run_(run), epoch_(run.epochs[blockIdx.x] + 1), watch_(own_watch(run)) {
    note_kernel_begin(run, warp_role::worker, epoch_);
  }

  [[nodiscard]] __device__ int ranks() const noexcept { return how_.messages.ranks; }
  [[nodiscard]] __device__ int rank() const noexcept { return how_.messages.rank; }
  [[nodiscard]] __device__ std::uint64_t epoch() const noexcept { return epoch_; }

  /// Ends the epoch if all threads succeeded (`well`). All threads must call this.
  __device__ void finish(bool well) const {
    note_kernel_end(run_);
    if (!block_.any(!well) && threadIdx.x == 0) run_.epochs[blockIdx.x] = epoch_;
  }

 protected:
  [[nodiscard]] __device__ int at_hop(int hop) const noexcept {
    const int peer = rank() + hop;
    return peer < ranks() ? peer : peer - ranks();
  }

  const packet_layout& how_;
  const run_arguments& run_;
  std::uint64_t epoch_;
  device_watch watch_;
  device_block block_;

 private:
  [[nodiscard]] __device__ static device_watch own_watch(const run_arguments& run) {
    const device_watch watch(run.world, static_cast<int>(blockIdx.x));
    return threadIdx.x < 32 ? watch : watch.silent();
  }
};

/// One block of a collective by packets. A lane handles `depth` packets of a message at a time:
/// packets i, i + step(), i + 2 step(), ...
template <class Bits, int depth>
class packet_worker : public packet_block {
 public:
  using column = packet_column<depth>;
  using batch = packet_batch<depth>;

  __device__ packet_worker(const packet_layout& how, const run_arguments& run)
      : packet_block(how, run),
        first_(blockIdx.x * blockDim.x + threadIdx.x),
        step_(gridDim.x * blockDim.x) {}

  /// The first packet of the calling thread, and the distance between its packets.
  [[nodiscard]] __device__ std::int64_t first() const noexcept { return first_; }
  [[nodiscard]] __device__ std::int64_t step() const noexcept { return step_; }
  /// The distance between the batches of the calling thread.
  [[nodiscard]] __device__ std::int64_t stride() const noexcept { return depth * step_; }

  [[nodiscard]] __device__ const Bits* in(const range& part) const noexcept {
    return reinterpret_cast<const Bits*>(run_.in) + part.begin;
  }
  [[nodiscard]] __device__ Bits* out(const range& part) const noexcept {
    return reinterpret_cast<Bits*>(run_.out) + part.begin;
  }

  /// Whether this block handles any packet of a message of `count` elements.
  [[nodiscard]] __device__ bool has_part_of(std::int64_t count) const noexcept {
    return packets_for<Bits>(count) > std::int64_t{blockIdx.x} * blockDim.x;
  }

  /// Waits until peers that send nothing back have read the packets that this epoch overwrites.
  /// Signals peers that get nothing back that last epoch's packets are read: that kernel has ended.
  /// `gets(peer)`: elements that `peer` sends back. If runs may have any count, all peers use
  /// counters, as the last run may have sent no packets. All threads must call this.
  template <class Gets>
  [[nodiscard]] __device__ bool reserve(const Gets& gets) {
    for (int begin = 0; begin < ranks(); begin += 32) {
      const int peer = begin + device_warp::thread_rank();
      const bool other = peer < ranks() && peer != rank();
      const bool gives = other && has_part_of(how_.messages.sent[peer].size);
      const bool takes = other && has_part_of(gets(peer));
      // The first poll overlaps the load of the epoch, whose latency is as long.
      pending_wait wait{nullptr, 0, 0, peer, counter_of(peer), verb::reserve};
      const bool any = how_.messages.any_count;
      if (gives && (any || !takes))
        wait.counter = run_.counters.local(static_cast<std::size_t>(wait.room));
      const bool asks = wait.counter != nullptr;
      if (threadIdx.x < 32) (void)wait.look();
      if (threadIdx.x < 32 && (any ? other : takes && !gives) && epoch_ > 1) {
        std::uint64_t& read = *run_.counters.at(peer, static_cast<std::size_t>(counter_of(rank())));
        cuda_memory::raise_release(noted_signal(run_, read, epoch_ - 1), epoch_ - 1);
      }
      if (!__any_sync(0xffffffffU, asks) || epoch_ <= 2) continue;
      wait.expected = epoch_ - 2;
      bool well = true;
      if (threadIdx.x < 32 && __any_sync(0xffffffffU, asks && wait.seen < wait.expected))
        well = wait_for_parts(wait, watch_, run_, run_.operator_name()) == wait_outcome::ok;
      if (block_.any(!well)) return false;
    }
    return true;
  }

  /// The data that a lane sends in a batch.
  struct outgoing {
    std::uint64_t data[batch::most];
  };
  /// Loads the batch that begins at packet `i`, for the peers from hop `begin` on.
  [[nodiscard]] __device__ outgoing load(std::int64_t i, int begin) const {
    outgoing loaded;
    each_sent(i, begin, [&](int k, std::int64_t which, int peer) {
      const range& part = how_.messages.sent[peer];
      loaded.data[k] = untax::detail::pack(in(part), which, part.size);
    });
    return loaded;
  }
  /// Loads the batch that is sent first. To be called before `reserve`, which waits for peers.
  [[nodiscard]] __device__ outgoing load_early() const { return load(first_, 1); }
  /// Sends all messages. Each batch is sent to the next rank first.
  __device__ void send_all(const outgoing& early) const {
    const action_note noted(run_, action::copy);
    for (std::int64_t i = first_; i < how_.capacity; i += stride()) {
      for (int begin = 1; begin < ranks(); begin += batch::peers) {
        const outgoing loaded = i == first_ && begin == 1 ? early : load(i, begin);
        each_sent(i, begin, [&](int k, std::int64_t which, int peer) {
          store(0, peer, which, loaded.data[k]);
        });
      }
    }
  }
  /// Sends `data` to all peers but `bystander`, as packet `i` of the second phase.
  __device__ void pass_on(std::int64_t i, std::uint64_t data, int bystander = -1) const {
    for (int hop = 1; hop < ranks(); ++hop) {
      if (at_hop(hop) != bystander) store(1, at_hop(hop), i, data);
    }
  }

  /// Waits for the batch that begins at packet `i`, from sources `begin`, begin + 1, ...; only for
  /// packets for which `wants(source, packet)` holds. All lanes of the warp must call this.
  template <class Wants>
  [[nodiscard]] __device__ bool receive(int phase, int begin, std::int64_t i, const Wants& wants,
                                        column& all) {
    all.first = slot(phase, rank(), begin, i);
    all.apart = how_.capacity;
    all.step = step_;
    all.first_source = begin;
    all.expected = epoch_;
    all.room = static_cast<int>(i);
    all.wanted = 0;
#pragma unroll
    for (int k = 0; k < column::most; ++k) {
      const int source = begin + k / depth;
      if (source < ranks() && source != rank() && wants(source, i + k % depth * step_))
        all.wanted |= 1U << k;
    }
    return wait_for_parts(all, watch_, run_, run_.operator_name()) == wait_outcome::ok;
  }

  /// Receives all messages of a phase into the result. All threads must call this.
  [[nodiscard]] __device__ bool collect(int phase) {
    return collect(phase, [&](int source) { return how_.messages.got[source].size; });
  }
  /// As above, for `size_of(source)` elements from each source in this phase.
  template <class SizeOf>
  [[nodiscard]] __device__ bool collect(int phase, const SizeOf& size_of) {
    const auto& got = how_.messages.got;
    for (std::int64_t warp = first_ - device_warp::thread_rank(); warp < how_.capacity;
         warp += stride()) {
      const std::int64_t i = warp + device_warp::thread_rank();
      for (int begin = 0; begin < ranks(); begin += batch::peers) {
        column all;
        const auto wants = [&](int source, std::int64_t which) {
          return which < packets_for<Bits>(size_of(source));
        };
        if (!receive(phase, begin, i, wants, all)) return false;
#pragma unroll
        for (int k = 0; k < column::most; ++k) {
          if ((all.wanted >> k & 1U) == 0) continue;
          const range& part = got[begin + k / depth];
          untax::detail::unpack(all.data[k], out(part), i + k % depth * step_, part.size);
        }
      }
    }
    return true;
  }

 private:
  /// Calls `visit(k, packet, peer)` for the existing packets of the batch that begins at `i`.
  template <class Visit>
  __device__ void each_sent(std::int64_t i, int begin, const Visit& visit) const {
#pragma unroll
    for (int k = 0; k < batch::most; ++k) {
      const int hop = begin + k / depth;
      if (hop >= ranks()) continue;
      const int peer = at_hop(hop);
      const std::int64_t which = i + k % depth * step_;
      if (which < packets_for<Bits>(how_.messages.sent[peer].size)) visit(k, which, peer);
    }
  }
  /// The index of the counter, at the sender, for this block and a receiver.
  [[nodiscard]] __device__ int counter_of(int receiver) const noexcept {
    return how_.counter(static_cast<int>(blockIdx.x), receiver);
  }
  [[nodiscard]] __device__ packet* slot(int phase, int at, int source,
                                        std::int64_t i) const noexcept {
    return reinterpret_cast<packet*>(run_.inbox.at(at)) + how_.slot(phase, epoch_, source, i);
  }
  __device__ void store(int phase, int peer, std::int64_t i, std::uint64_t data) const {
    untax::detail::store_packet(slot(phase, peer, rank(), i), {data, epoch_});
  }

  std::int64_t first_;
  std::int64_t step_;
};

/// Calls `use` with the depth of a lane's batches, a std::integral_constant. A batch covers up to
/// eight ranks; with fewer ranks it has more packets per rank.
template <class Use>
auto with_depth(int ranks, const Use& use) {
  if (ranks <= packet_batch<4>::peers) return use(std::integral_constant<int, 4>{});
  if (ranks <= packet_batch<2>::peers) return use(std::integral_constant<int, 2>{});
  return use(std::integral_constant<int, 1>{});
}

/// A packet kernel, and what its launches need.
template <class Bits>
[[nodiscard]] collective_kernel packet_code(const void* kernel, const packet_layout& how,
                                            int blocks) {
  collective_kernel code;
  code.kernel = kernel;
  code.first_argument = kernel_argument(how);
  code.blocks = {blocks};
  code.threads = packet_threads;
  code.inbox_bytes = how.slots() * sizeof(packet);
  code.counters = how.counter(blocks, 0);
  code.element_bytes = sizeof(Bits);
  code.content = room_content::packets;
  code.text = "packets";
  return code;
}

}  // namespace untax::gpu
