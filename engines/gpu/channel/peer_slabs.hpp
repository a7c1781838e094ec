#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/owner_exchange.hpp>

namespace untax::gpu {

/// The slabs of an inbox: one per rank, in two sets by the parity of epochs. Words are their own
/// signal: zero means not arrived, no word that is sent is zero, and the owner resets words to zero
/// when it has taken them. So one counter per pair of ranks and set is enough: the owner raises it
/// when it has taken all words. Plain arithmetic, the same in kernels and on the host.
struct peer_slabs : owner_exchange<peer_slabs> {
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

  // The functions that owner_exchange asks for. A slab has the same number as the counter that
  // would signal it; no rank raises that counter, since words are their own signal.

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr bool has_rooms() noexcept { return true; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int ready_of(int set, int source,
                                                         int /*part*/) const noexcept {
    return set * ranks + source;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int free_of(int set, int owner) const noexcept {
    return set * ranks + owner;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int takers() noexcept { return 1; }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::uint64_t credit() noexcept { return 1; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int landed_of(int owner,
                                                          int /*passer*/) const noexcept {
    return sets().sets * ranks + owner;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counters() const noexcept {
    return (sets().sets + 1) * ranks;
  }
};

}  // namespace untax::gpu
