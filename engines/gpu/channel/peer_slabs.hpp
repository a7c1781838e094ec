#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>

namespace untax::gpu {

/// The slabs of an inbox: one per rank, in two sets by the parity of epochs. Words are their own
/// signal: zero means not arrived, no word that is sent is zero, and the owner resets words to zero
/// when it has taken them. So one counter per pair of ranks and set is enough: the owner raises it
/// when it has taken all words. Plain arithmetic, the same in kernels and on the host.
struct peer_slabs {
  int own_rank = 0;
  int ranks = 1;
  bool passes_on = false;  ///< owners store their results to all ranks

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr room_sets sets() noexcept { return {2}; }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return own_rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return ranks; }

  /// The number of the slab of `source` in the inbox of any owner.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int slab_of(int source,
                                                        std::uint64_t epoch) const noexcept {
    return sets().set_of(epoch) * ranks + source;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room slab(int source, int owner,
                                                      std::uint64_t epoch) const noexcept {
    room r;
    r.producer = source;
    r.consumer = owner;
    r.number = slab_of(source, epoch);
    r.ready = 0;  // never raised: words are their own signal
    r.free = sets().set_of(epoch) * ranks + owner;
    r.use = sets().use_of(epoch);
    return r;
  }
  /// The flag by which `owner` signals that all its results have been stored at rank `to`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room landed(int owner, int to,
                                                        std::uint64_t epoch) const noexcept {
    room r;
    r.producer = owner;
    r.consumer = to;
    r.number = r.ready = sets().sets * ranks + owner;
    r.use = epoch;
    return r;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counters() const noexcept {
    return (sets().sets + 1) * ranks;
  }
};

}  // namespace untax::gpu
