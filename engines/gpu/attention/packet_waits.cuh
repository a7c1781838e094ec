#pragma once

#include <cstdint>

#include <untax/flow/wait_site.hpp>
#include <untax/rma/packet.cuh>

#include "engines/gpu/attention/partial.cuh"
#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/sm90/ptx/packet_load.cuh"

namespace untax::gpu {

// Waits of a lane for packets. All loads are issued before any packet is checked, and the packet
// loaded last is checked first: compilers would move a check of the first packet between the loads.
// Data are taken from the same loads that saw the epoch, or its mark. Loads are relaxed.

/// The fields that a wait record reports, which all of these waits share.
struct packet_wait {
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  __device__ void raise(std::uint64_t /*value*/) noexcept {}

 protected:
  /// Returns 1 if the oldest packet has the expected epoch or a later one, else 0.
  [[nodiscard]] __device__ std::uint64_t judge(std::uint64_t oldest) noexcept {
    if (oldest >= expected) return 1;
    seen = oldest;
    return 0;
  }
};

/// A wait for one packet, or for none if `at` is null.
struct lane_packet : packet_wait {
  const packet* at = nullptr;
  std::uint64_t data = 0;

  [[nodiscard]] __device__ std::uint64_t look() {
    if (at == nullptr) return 1;
    const packet p = untax::detail::load_packet(at);
    data = p.data;
    return judge(p.epoch);
  }
};

/// A wait for `each` adjacent packets at each of several places, `most` places at most.
template <int each, int most>
struct spread_packets : packet_wait {
  const packet* first = nullptr;  ///< at the first place
  const packet* next = nullptr;   ///< at the second place; from there every `apart` packets
  std::int64_t apart = 0;
  int places = 0;
  std::uint64_t data[most][each];

  [[nodiscard]] __device__ std::uint64_t look() {
    packet found[most][each];
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const packet* const from = k == 0 ? first : next + (k - 1) * apart;
#pragma unroll
      for (int i = 0; i < each; ++i) found[k][i] = load_packet_if(k < places, from + i);
    }
    std::uint64_t oldest = expected;
#pragma unroll
    for (int k = most - 1; k >= 0; --k) {
#pragma unroll
      for (int i = each - 1; i >= 0; --i) {
        data[k][i] = found[k][i].data;
        oldest = found[k][i].epoch < oldest ? found[k][i].epoch : oldest;
      }
    }
    return judge(oldest);
  }
};

/// A wait for four elements of a row at each of several places, `most` places at most, and for a
/// packet of statistics, or for none if `tail` is null.
template <class Wire, int most>
struct row_packets : packet_wait {
  const packet* first = nullptr;  ///< at the first place
  int apart = 0;                  ///< packets from one place to the next
  int places = 0;
  const packet* tail = nullptr;
  int missing = 0;  ///< `most` if the tail has not arrived, else the first place that is missing
  packet fours[most];
  std::uint64_t statistics = 0;

  /// Until the packets of `epoch` arrive, their places hold packets of the set's previous use.
  __device__ explicit row_packets(std::uint64_t epoch) {
    expected = epoch;
    seen = epoch > 2 ? epoch - 2 : 0;
  }

  [[nodiscard]] __device__ std::uint64_t look() {
    using format = partial_format<Wire>;
    const packet nothing = format::marked({}, expected);
    const packet last = load_packet_if(tail != nullptr, tail);
#pragma unroll
    for (int k = 0; k < most; ++k)
      fours[k] = load_packet_if(k < places, first + k * apart, nothing);
    bool came = true;
#pragma unroll
    for (int k = most - 1; k >= 0; --k) {
      if (format::has_come(fours[k], expected)) continue;
      missing = k;
      came = false;
    }
    statistics = last.data;
    if (last.epoch < expected) {
      missing = most;
      came = false;
    }
    return came || left_out(mutant::attend_ranks) ? 1 : 0;
  }
};

/// A wait for packets of up to four ranks. `tail` is of the rank with the lane's number, if any.
template <class Wire>
struct rank_packets : row_packets<Wire, 4> {
  static constexpr int most = 4;

  int rank = 0;  ///< the first of the ranks

  using row_packets<Wire, most>::row_packets;

  [[nodiscard]] __device__ std::uint64_t look() {
    const std::uint64_t came = row_packets<Wire, most>::look();
    this->peer = this->missing < most ? rank + this->missing : static_cast<int>(threadIdx.x) % 32;
    return came;
  }
};

}  // namespace untax::gpu
