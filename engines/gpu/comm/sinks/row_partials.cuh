#pragma once

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/sinks/landed_partials.cuh"
#include "engines/gpu/comm/sinks/row_partials.hpp"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// Tells where a thread's part of C goes, and signals to peers what has been stored.
template <class Protocol>
template <class Io>
class row_partials<Protocol>::view {
 public:
  using peers_partials = gpu::landed_partials<Io>;

  __device__ view(const Io& io, const gpu::gemm_arguments& /*given*/) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  [[nodiscard]] __device__ int world() const { return io_.how.world(); }
  [[nodiscard]] __device__ static bool in_turn() { return false; }
  [[nodiscard]] __device__ peers_partials partials() const { return peers_partials(io_); }

  /// The last work with parts for peers, also if another block finishes it; -1 if there is none.
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
  [[nodiscard]] __device__ gpu::copy_hops copies_of(int row) {
    const int at = io_.rotation.rotated(row);
    if (is_sum(at)) return {0, io_.passes_on && reserved_ ? world() : 1};
    if (io_.owned.owner_rows == 0) return {0, reserved_ ? world() : 1};
    const gpu::owned_rows::owners owners = io_.owned.of_part(at);
    const int hop = owners.first - io_.how.rank();
    keeps_partials_ = keeps_partials_ || (hop <= 0 && hop + owners.count > 0);
    return {hop < 0 ? hop + world() : hop, reserved_ ? owners.count : 0};
  }
  [[nodiscard]] __device__ gpu::destination copy_of(int row, int hop) const {
    const int at = io_.rotation.rotated(row);
    if (is_sum(at))
      return {&io_.sums[hop], at - (io_.passes_on ? 0 : io_.owned.first(io_.how.rank()))};
    const int owner = receiver_at_hop(io_.how.rank(), hop, world());
    return {&io_.c[hop], at - io_.owned.slab_begin(owner)};
  }

  /// Called by an epilogue warp. Waits until peers have opened their memory. If the wait fails,
  /// their memory is not accessed at all.
  __device__ void before_store() { reserved_ = output(0).reserve(); }
  __device__ void after_tile(const gpu::tile_place& /*tile*/) const {}
  __device__ void has_sent(gpu::peer_meeting& meeting) const {
    gpu::tma_store_wait();
    if (!reserved_) meeting.failed = 1;
    meeting.sent.arrive();
  }
  /// Waits until partials in the own slab, which MMA warps add, and sums at peers are complete.
  /// Sums that stay here are complete when the kernel has ended. A block that waited for them would
  /// hold up the next kernel's block.
  __device__ void end_stores(gpu::peer_meeting& meeting, bool sends_until_then) const {
    if (sends_until_then) has_sent(meeting);
    if (io_.adds && (io_.passes_on || keeps_partials_)) gpu::tma_store_wait();
    meeting.stored.arrive();
  }
  /// Waits only for steps of peers that precede every wait of theirs, so no cycle of waits arises.
  /// If a peer has not opened its memory, nothing was stored, so nothing is published.
  __device__ void meet(gpu::peer_meeting& meeting) const {
    meeting.sent.wait(0);
    const bool closed = meeting.failed == 0 && close_as_last(0, *io_.sent_all);
    // The host reports failed waits.
    if (!closed && io_.adds && !gpu::left_out(gpu::mutant::sums_acquire)) (void)output(0).acquire();
    __syncwarp();
    if (threadIdx.x % 32 == 0) meeting.landed.arrive();
  }

  [[nodiscard]] __device__ bool has_stored() const { return reserved_; }
  __device__ void finish(bool stored) const {
    if (stored && io_.adds && io_.passes_on) (void)close_as_last(1, *io_.summed);
  }

 private:
  /// Whether the part of a tile that begins at `row` goes to a peer.
  [[nodiscard]] __device__ bool sends(int row) const {
    if (io_.owned.owner_rows == 0) return world() > 1;
    const gpu::owned_rows::owners owners = io_.owned.of_part(io_.rotation.rotated(row));
    return owners.count > 1 || (owners.count == 1 && owners.first != io_.how.rank());
  }
  [[nodiscard]] __device__ bool is_sum(int at) const {
    return sums_ && io_.owned.has_part(io_.how.rank(), at);
  }
  /// An output of all blocks that multiply, used by this warp.
  [[nodiscard]] __device__ output_channel<Protocol> output(int number) const {
    return {io_, number, epoch_, slot_of_storing_warp()};
  }
  /// Closes an output if this is the last block that calls this function.
  __device__ bool close_as_last(int number, std::uint64_t& counted) const {
    return untax::close_as_last(output(number), counted, static_cast<unsigned>(io_.multiplying));
  }

  const Io& io_;
  std::uint64_t epoch_ = 0;
  bool reserved_ = true;
  bool sums_ = false;
  bool keeps_partials_ = false;  // some partials are in the rank's own slab
};

}  // namespace untax
