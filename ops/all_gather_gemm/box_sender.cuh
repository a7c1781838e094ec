#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/transfer/arrival_reports.cuh"
#include "engines/sm90/transfer/box_stream.cuh"
#include "ops/all_gather_gemm/shard_sender.cuh"

namespace untax {

/// A block that pushes pieces of the rank's shard as boxes. Two warps, for each piece the verbs of
/// the protocol:
///
///   warp 0   reserve, move    the pieces follow each other without a gap
///   warp 1   publish          all that has arrived since the last time
class box_sender {
 public:
  /// Of a block that does nothing else.
  static constexpr int threads = 64;

  /// Where a box goes.
  struct sent_box {
    sm90::layer_box_at to;
    int hop;
    int hops;
  };
  /// Of shared memory.
  struct memory {
    sm90::box_stream<sent_box>::memory boxes;
    sm90::arrival_reports arrived;
  };

  /// By all threads of the block, two warps at least. It is number `me` of `traffic.movers`; `slot`
  /// names its wait record, which warp 0 uses alone. Each warp returns when it has done its own
  /// part; warp 0 with false after a wait that ended badly.
  static __device__ bool run(const gather_traffic& traffic, memory& shared, int me,
                             std::uint64_t epoch, int slot) {
    if (threadIdx.x == 0) {
      shared.boxes.init();
      shared.arrived.init();
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    box_sender sender(traffic, shared, me, epoch, slot);
    if (warp == 0) return sender.move();
    if (warp == 1) sender.publish();
    return true;
  }

 private:
  __device__ box_sender(const gather_traffic& traffic, memory& shared, int me, std::uint64_t epoch,
                        int slot)
      : t_(traffic), shared_(shared), share_{me, traffic.movers}, sender_(traffic, epoch, slot) {}

  __device__ bool move() {
    const bool leads = device_warp::thread_rank() == 0;
    sm90::box_stream<sent_box> stream(shared_.boxes, t_.sending.hops_together());
    const auto store = [&](const sent_box& box, const std::byte* from) {
      for (int i = 0; i < box.hops; ++i)
        sm90::store_layer_box(t_.inbox_boxes[sender_.peer(box.hop + i)], box.to, from);
    };
    int arrived = 0;
    const auto stored = [&] { shared_.arrived.add(arrived++); };
    bool going = true;
    const int hops = t_.sending.hops_together();
    const int turns = t_.sending.turns(share_);
    for (int i = 0; i < turns && going; ++i) {
      const auto [p, hop] = t_.sending.turn(share_, i);
      going = sender_.reserve(hop, hops);
      if (!going || !leads) continue;
      stream.move(sent_box{{p.column, p.row, sender_.set()}, hop, hops}, t_.shard_boxes,
                  {p.column, p.row, 0}, t_.sending.box_bytes(), store, stored);
    }
    if (leads) {
      stream.finish(store, stored);
      if (!going) shared_.arrived.abandon(arrived);
    }
    __syncwarp();
    return going;
  }

  __device__ void publish() {
    const int hops = t_.sending.hops_together();
    if (hops == 0) return;
    const int lane = device_warp::thread_rank();
    shared_.arrived.each(t_.sending.turns(share_), 32 / hops, [&](int first, int n) {
      if (lane >= n * hops) return;
      const auto turn = t_.sending.turn(share_, first + lane / hops);
      sender_.publish(turn.piece, turn.hop + lane % hops);
    });
  }

  const gather_traffic& t_;
  memory& shared_;
  strided share_;
  shard_sender sender_;
};

}  // namespace untax
