#pragma once

#include <untax/flow/room.hpp>

#include "engines/gpu/channel/pending_waits.cuh"

namespace untax::gpu {

/// The wait of a lane that reserves a room: until worker `reader` of its consumer has retired the
/// previous use. There has to be a previous use: `needed_free` is not 0.
[[nodiscard]] __device__ inline pending_wait reserving(const run_arguments& run, const room& r,
                                                       int reader = 0) {
  return {run.counters.local(static_cast<std::size_t>(r.free + reader)),
          r.needed_free(),
          0,
          r.consumer,
          r.number,
          verb::reserve};
}
/// The wait of a lane that acquires a room.
[[nodiscard]] __device__ inline pending_wait acquiring(const run_arguments& run, const room& r) {
  return {run.counters.local(static_cast<std::size_t>(r.ready)),
          r.use,
          0,
          r.producer,
          r.number,
          verb::acquire};
}

/// The four verbs of flow/channel.hpp, executed by a warp for lists of rooms. Lane i handles room
/// `room_of(i)`; all verbs but publish skip a room without a name. All waits together last as long
/// as the longest, and one release serves several peers. All lanes call with the same count.
///
/// A wait returns false if it failed, which the host reports.
class warp_channel {
 public:
  /// `slot`: the wait record of the warp.
  __device__ warp_channel(const run_arguments& run, int slot) : run_(run), slot_(slot) {}

  /// Producer: waits until the reader of each room has retired its previous use.
  template <class RoomOf>
  [[nodiscard]] __device__ bool reserve(int count, const RoomOf& room_of) const {
    return await(count, [&](int i) { return wait_to_reserve(room_of(i)); });
  }
  /// As `reserve`, with one poll before the wait: for rooms that are usually free.
  template <class RoomOf>
  [[nodiscard]] __device__ bool reserve_free(int count, const RoomOf& room_of) const {
    const auto part = [&](int i) { return wait_to_reserve(room_of(i)); };
    return have_arrived(count, part) || await(count, part);
  }
  /// Consumer: waits until the bytes of all rooms have arrived. Acquire, for all lanes.
  template <class RoomOf>
  [[nodiscard]] __device__ bool acquire(int count, const RoomOf& room_of) const {
    return await(count, [&](int i) {
      const room r = room_of(i);
      return r.named() ? acquiring(run_, r) : pending_wait{};
    });
  }
  /// Producer: signals that the bytes have been written. Releases what the lane has written or
  /// synchronised with.
  template <class RoomOf>
  __device__ void publish(int count, const RoomOf& room_of) const {
    const int lane = device_warp::thread_rank();
    if (lane < count) publish(room_of(lane));
    __syncwarp();
  }
  /// Consumer: signals that its only reader will not read this use again. Release.
  template <class RoomOf>
  __device__ void retire(int count, const RoomOf& room_of) const {
    const int lane = device_warp::thread_rank();
    if (lane < count) retire(room_of(lane));
    __syncwarp();
  }

  /// Publish and retire for one room, called by one thread.
  __device__ void publish(const room& r) const { raise(r.consumer, r.ready, r.use); }
  __device__ void retire(const room& r) const {
    if (r.free >= 0) raise(r.producer, r.free, r.use);
  }

  /// The index of the first of `count` rooms of this rank that has not arrived (counter
  /// `ready_of(i)` is below `use`), or `count`. Acquires the rooms before it, for all lanes.
  template <class ReadyOf>
  [[nodiscard]] __device__ int first_missing(int count, std::uint64_t use,
                                             const ReadyOf& ready_of) const {
    for (int first = 0; first < count; first += 32) {
      const int i = first + device_warp::thread_rank();
      const bool missing = i < count && cuda_memory::load_acquire(*run_.counters.local(
                                            static_cast<std::size_t>(ready_of(i)))) < use;
      const unsigned lanes = __ballot_sync(everybody, missing);
      __syncwarp();  // a vote orders no memory
      if (lanes != 0) return first + __ffs(static_cast<int>(lanes)) - 1;
    }
    return count;
  }
  /// Waits for the deferred waits `part(i)`. Returns false if one failed. Acquire, for all lanes.
  template <class Part>
  [[nodiscard]] __device__ bool await(int count, const Part& part) const {
    for (int first = 0; first < count; first += 32) {
      if (!wait_in_warp(run_, slot_, part_of_lane(first, count, part))) return false;
    }
    __syncwarp();
    return true;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  /// The wait before a reserve; empty if the room has no previous use, or is a flag.
  [[nodiscard]] __device__ pending_wait wait_to_reserve(const room& r) const {
    return r.free < 0 || r.needed_free() == 0 ? pending_wait{} : reserving(run_, r);
  }

  /// Polls each part once. Returns whether all have arrived. Acquire, for all lanes.
  template <class Part>
  [[nodiscard]] __device__ static bool have_arrived(int count, const Part& part) {
    bool all = true;
    for (int first = 0; first < count && all; first += 32) {
      pending_wait mine = part_of_lane(first, count, part);
      all = __all_sync(everybody, mine.look() != 0) != 0;
    }
    __syncwarp();
    return all;
  }
  template <class Part>
  [[nodiscard]] __device__ static pending_wait part_of_lane(int first, int count,
                                                            const Part& part) {
    const int i = first + device_warp::thread_rank();
    return i < count ? part(i) : pending_wait{};
  }
  [[nodiscard]] __device__ static bool wait_in_warp(const run_arguments& run, int slot,
                                                    pending_wait mine) {
    device_watch watch(run.world, slot);
    return wait_for_parts(mine, watch, run, run.operator_name()) == wait_outcome::ok;
  }
  __device__ void raise(int rank, int counter, std::uint64_t use) const {
    std::uint64_t& raised = *run_.counters.at(rank, static_cast<std::size_t>(counter));
    cuda_memory::raise_release(noted_signal(run_, raised, use), use);
  }

  const run_arguments& run_;
  int slot_;
};

}  // namespace untax::gpu
