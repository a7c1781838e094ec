#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/flow/device_control.hpp>
#include <untax/flow/wait.hpp>
#include <untax/memory/cuda_memory.cuh>

namespace untax {

/// Watches the waits of one group of a kernel (a `wait_guard`). It publishes the wait record where
/// the host can read it. It ends the wait when the world was stopped or the limit has passed. In
/// the latter case it stops the kernels of all ranks; the host, which finds the record and the
/// outcome, then stops the world and reports the waits of all ranks.
///
/// If a wait ends with anything but `ok`, the group leaves the kernel through its normal exit. The
/// context stays usable.
class device_watch {
 public:
  /// `slot` is the index of the group's record, from 0. Groups of a rank that wait at the same time
  /// have different ones. Groups beyond the table share its last record, and appear there only when
  /// they give up.
  __device__ device_watch(const device_control& world, int slot) noexcept
      : world_(world),
        record_(first_kernel_slot + (slot < kernel_slots ? slot : kernel_slots - 1)),
        publishes_(slot < kernel_slots - 1) {}

  /// The watch of a thread that waits beside the one that publishes for its group.
  [[nodiscard]] __device__ device_watch silent() const noexcept {
    device_watch other = *this;
    other.publishes_ = false;
    return other;
  }

  /// Whether to look: once every 1024 polls.
  [[nodiscard]] __device__ static bool due(poll_count polls) noexcept {
    return polls % polls_between_looks == polls_between_looks - 1;
  }

  /// Publishes the record and checks the reasons to end the wait.
  [[nodiscard]] __device__ wait_outcome look(const wait_site& site, std::uint64_t seen) {
    const std::uint64_t now = cuda_memory::now();
    const bool first = since_ == 0;
    if (first) since_ = now;
    // A wait for several counters names the next one once the first has arrived.
    if (publishes_ && (first || !names(site))) {
      publish(site, seen);
    } else if (publishes_) {
      store_relaxed(world_.records[record_].seen, seen);
    }
    if (load(*world_.stop) != 0 || load(*world_.host_stop) != 0) return stopped();
    if (world_.limit_ns == 0 || now - since_ < world_.limit_ns) return wait_outcome::ok;
    // One waiter of a rank reports for all of its waiters.
    if (word(*world_.stop).exchange(1, cuda::memory_order_acq_rel) != 0) return stopped();
    return give_up(site, seen);
  }

  /// Clears the record.
  __device__ void leave() noexcept {
    since_ = 0;
    if (publishes_) store(world_.records[record_].since, 0);
  }

  [[nodiscard]] __device__ const device_control& world() const noexcept { return world_; }

 private:
  using system_word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
  static constexpr poll_count polls_between_looks = 1024;

  __device__ static system_word word(const std::uint64_t& w) noexcept {
    return system_word(const_cast<std::uint64_t&>(w));
  }
  __device__ static std::uint64_t load(const std::uint64_t& w) noexcept {
    return word(w).load(cuda::memory_order_acquire);
  }
  __device__ static void store(std::uint64_t& w, std::uint64_t value) noexcept {
    word(w).store(value, cuda::memory_order_release);
  }
  __device__ static void store_relaxed(std::uint64_t& w, std::uint64_t value) noexcept {
    word(w).store(value, cuda::memory_order_relaxed);
  }

  __device__ static std::uint64_t place_of(const wait_site& site) {
    return packed_place(static_cast<std::uint8_t>(site.what), site.peer, site.room);
  }
  /// Whether the record is of this site.
  [[nodiscard]] __device__ bool names(const wait_site& site) const {
    return load(world_.records[record_].where) == place_of(site);
  }

  __device__ void publish(const wait_site& site, std::uint64_t seen) {
    wait_record& record = world_.records[record_];
    store(record.since, 0);
    store_relaxed(record.where, place_of(site));
    store_relaxed(record.expected, site.expected);
    store_relaxed(record.seen, seen);
    store_relaxed(world_.progress[record_], site.progress);
    // Each wait of a kernel contains this code; unrolled it would be a quarter of the kernel.
#pragma unroll 1
    for (std::uint32_t i = 0; i < sizeof record.operator_name / 8; ++i)
      store_relaxed(record.operator_name[i], letters(site.operator_name, 8 * i));
    store(record.since,
          static_cast<std::uint64_t>(static_cast<std::int64_t>(since_) + world_.clock_offset));
  }

  /// Eight letters of a name from `begin` on, with zeros after its end.
  __device__ static std::uint64_t letters(const name_ref& name, std::uint32_t begin) {
    std::uint64_t packed = 0;
#pragma unroll 1
    for (std::uint32_t i = 0; i < 8 && begin + i < name.size; ++i)
      packed |= std::uint64_t{static_cast<unsigned char>(name.data[begin + i])} << (8 * i);
    return packed;
  }

  // The record stays, here and below: the host reads it after the kernel has ended.
  [[nodiscard]] __device__ wait_outcome stopped() {
    since_ = 0;
    store(world_.outcome[1], 1);
    return wait_outcome::aborted;
  }

  [[nodiscard]] __device__ wait_outcome give_up(const wait_site& site, std::uint64_t seen) {
    if (!publishes_) publish(site, seen);
    since_ = 0;
    if (load(world_.outcome[0]) == 0)
      store(world_.outcome[0], 1 + static_cast<std::uint64_t>(record_));
    auto* mine = reinterpret_cast<std::byte*>(world_.stop);
#pragma unroll 1
    for (int peer = 0; peer < world_.ranks; ++peer) {
      const auto away = static_cast<std::int64_t>(peer - world_.rank) *
                        static_cast<std::int64_t>(world_.stop_span);
      store(*reinterpret_cast<std::uint64_t*>(mine + away), 1);
    }
    return wait_outcome::timeout;
  }

  device_control world_;
  int record_;
  bool publishes_;
  std::uint64_t since_ = 0;  // by %globaltimer; 0: no wait is being looked at
};

static_assert(wait_guard<device_watch>);

}  // namespace untax
