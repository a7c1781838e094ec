#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// all_gather: every rank gets the shards of all ranks.
struct gathered_parts {
  sharding shards;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range sent(int from, int /*to*/) const noexcept {
    return {0, shards.of(from).size};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t lands(int from,
                                                               int /*to*/) const noexcept {
    return shards.of(from).begin;
  }
};

/// broadcast: every rank gets all of the root's data.
struct root_parts {
  std::int64_t count = 0;
  int root = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range sent(int from, int /*to*/) const noexcept {
    return {0, from == root ? count : 0};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t lands(int /*from*/,
                                                               int /*to*/) const noexcept {
    return 0;
  }
};

/// all_to_all with parts of one size.
struct equal_parts {
  std::int64_t count = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range sent(int /*from*/, int to) const noexcept {
    return {to * count, count};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t lands(int from,
                                                               int /*to*/) const noexcept {
    return from * count;
  }
};

/// all_to_all with parts of any sizes.
struct unequal_parts {
  const std::int64_t* counts = nullptr;  ///< counts[from * world + to]; outlives the protocol
  int world = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range sent(int from, int to) const noexcept {
    std::int64_t begin = 0;
    for (int before = 0; before < to; ++before) begin += at(from, before);
    return {begin, at(from, to)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t lands(int from, int to) const noexcept {
    std::int64_t begin = 0;
    for (int before = 0; before < from; ++before) begin += at(before, to);
    return begin;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t at(int from, int to) const noexcept {
    return counts[static_cast<std::int64_t>(from) * world + to];
  }
};

}  // namespace untax
