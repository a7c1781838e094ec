#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/step.hpp>

namespace untax {

/// A barrier of all ranks as steps: a flag to every peer, then one from every peer. A flag is a
/// room without bytes. Each barrier of a program has its own block of flags, so that it is passed
/// once an epoch without a reset.
struct barrier_steps {
  int rank = 0;
  int world = 1;
  counter_block flags;

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(std::uint64_t epoch, Emit&& emit) const {
    for (int peer = 0; peer < world; ++peer) {
      if (peer != rank) emit(step{.publish = flag(rank, peer, epoch)});
    }
    for (int peer = 0; peer < world; ++peer) {
      if (peer != rank) emit(step{.acquire = flag(peer, rank, epoch)});
    }
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room flag(int from, int to, std::uint64_t epoch) const {
    const int index = flags.at(0, from);
    return {.producer = from, .consumer = to, .number = index, .ready = index, .use = epoch};
  }
};

}  // namespace untax
