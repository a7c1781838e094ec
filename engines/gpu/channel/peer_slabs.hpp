#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>

namespace untax::gpu {

/// Slabs of an inbox, one of each rank, in two sets by the parity of epochs, whose words are their
/// own signal: none that is sent is zero, which stands where nothing has come, and whoever takes
/// words puts zeros back. So there is one counter for each pair of ranks and set, by which an owner
/// says that it has done so. Plain arithmetic, the same in kernels and on the host.
struct peer_slabs {
  int own_rank = 0;
  int ranks = 1;
  bool passes_on = false;  ///< the owner writes what it makes into the results of everybody

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr room_sets sets() noexcept { return {2}; }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return own_rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return ranks; }

  /// The number of a slab of any owner.
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
    r.ready = 0;  // which nobody raises: words tell of themselves
    r.free = sets().set_of(epoch) * ranks + owner;
    r.use = sets().use_of(epoch);
    return r;
  }
  /// Says that all that `owner` passes on lies in the results of rank `to`.
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
