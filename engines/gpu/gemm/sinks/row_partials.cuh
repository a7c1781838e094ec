#pragma once

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/sinks/landed_partials.cuh"
#include "engines/gpu/gemm/sinks/row_partials.hpp"

namespace untax {

/// Where a thread's part of C goes, and whom it tells of it.
template <class Protocol>
template <class Io>
class row_partials<Protocol>::view {
 public:
  using peers_partials = gpu::landed_partials<Io>;

  __device__ view(const Io& io, const gpu::gemm_arguments& /*given*/) : t_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  [[nodiscard]] __device__ int world() const { return t_.how.world(); }
  [[nodiscard]] __device__ static bool in_turn() { return false; }
  [[nodiscard]] __device__ peers_partials partials() const { return peers_partials(t_); }

  /// By this block or by one that it passes its sums to; -1 if there is none.
  template <gpu::tile_config config>
  [[nodiscard]] __device__ int last_sent(const gpu::block_view<config>& block, int group) const {
    int last = -1;
    int number = 0;
    block.each_tile([&](const gpu::work_tile& w) {
      const int row = block.place(w).row;
      if constexpr (config.swap_ab) {
        for (int i = 0; i < subtiles_of(config); ++i)
          last = sends(row + i * subtile_columns(config)) ? number : last;
      } else if (sends(row + group * gpu::warpgroup_rows)) {
        last = number;
      }
      ++number;
    });
    return last;
  }
  __device__ void take_sums(bool sums) { sums_ = sums || world() == 1; }
  [[nodiscard]] __device__ gpu::copy_hops copies_of(int row) const {
    const int at = t_.turn.turned(row);
    if (is_sum(at)) return {0, t_.passes_on && going_ ? world() : 1};
    if (t_.owned.each == 0) return {0, going_ ? world() : 1};
    const gpu::owned_rows::owners owners = t_.owned.of_part(at);
    const int hop = owners.first - t_.how.rank();
    return {hop < 0 ? hop + world() : hop, going_ ? owners.count : 0};
  }
  [[nodiscard]] __device__ gpu::destination copy_of(int row, int hop) const {
    const int at = t_.turn.turned(row);
    if (is_sum(at)) return {&t_.sums[hop], at - (t_.passes_on ? 0 : t_.owned.first(t_.how.rank()))};
    const int owner = receiver_at_hop(t_.how.rank(), hop, world());
    return {&t_.c[hop], at - t_.owned.slab_begin(owner)};
  }

  /// By an epilogue warp. Peers' memory is not touched before they have opened it; where that does
  /// not happen, it is not touched at all.
  __device__ void before_store() { going_ = output(0).reserve(); }
  __device__ void after_tile(const gpu::tile_place& /*tile*/) const {}
  __device__ void has_sent(gpu::peer_meeting& meeting) const {
    gpu::tma_store_wait();
    if (!going_) meeting.failed = 1;
    meeting.sent.arrive();
  }
  __device__ void end_stores(gpu::peer_meeting& meeting, bool sends_until_then) const {
    if (sends_until_then) has_sent(meeting);
    meeting.stored.arrive();
  }
  /// What is awaited here is what peers do before they wait for anything. Where one has not opened
  /// its memory nothing was stored, and so nobody is told that it was.
  __device__ void meet(gpu::peer_meeting& meeting) const {
    meeting.sent.wait(0);
    const bool closed = meeting.failed == 0 && close_as_last(0, *t_.sent_all);
    // The host reports failed waits.
    if (!closed && t_.adds && !gpu::left_out(gpu::mutant::sums_acquire)) (void)output(0).acquire();
    __syncwarp();
    if (threadIdx.x % 32 == 0) meeting.landed.arrive();
  }

  [[nodiscard]] __device__ bool has_stored() const { return going_; }
  __device__ void finish(bool stored) const {
    if (stored && t_.adds && t_.passes_on) (void)close_as_last(1, *t_.summed);
  }

 private:
  /// Whether a part goes to a peer that begins at a row.
  [[nodiscard]] __device__ bool sends(int row) const {
    if (t_.owned.each == 0) return world() > 1;
    const gpu::owned_rows::owners owners = t_.owned.of_part(t_.turn.turned(row));
    return owners.count > 1 || (owners.count == 1 && owners.first != t_.how.rank());
  }
  [[nodiscard]] __device__ bool is_sum(int at) const {
    return sums_ && t_.owned.has_part(t_.how.rank(), at);
  }
  /// This warp, speaking for the blocks that multiply.
  [[nodiscard]] __device__ output_channel<Protocol> output(int number) const {
    return {t_, number, epoch_, slot_of_storing_warp()};
  }
  /// The same, of the last block to come here.
  __device__ bool close_as_last(int number, std::uint64_t& counted) const {
    return untax::close_as_last(output(number), counted, static_cast<unsigned>(t_.multiplying));
  }

  const Io& t_;
  std::uint64_t epoch_ = 0;
  bool going_ = true;
  bool sums_ = false;
};

}  // namespace untax
