#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <untax/core/error.hpp>
#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// What one rank sends and gets, as a table: small enough to be a kernel's argument, and nothing
/// has to be worked out from sizes and ranks again. In elements.
struct message_table {
  int ranks = 1;
  int rank = 0;
  range sent[most_ranks];               ///< of the input, by receiver
  range got[most_ranks];                ///< of the result, by source
  std::int64_t there[most_ranks] = {};  ///< where what is sent begins in the result, by receiver
  /// Of the largest message between any two ranks: symmetric memory is of one size everywhere.
  std::int64_t largest = 0;
  bool any_count = false;  ///< runs have any count: `largest` is of the one with most

  message_table() = default;
  /// Throws `unsupported` for too many ranks.
  message_table(int all, int own) : ranks(all), rank(own) {
    if (ranks <= most_ranks) return;
    throw error(errc::unsupported, "rank " + std::to_string(rank) + ": collectives on GPUs have " +
                                       std::to_string(most_ranks) +
                                       " ranks at most; this world has " + std::to_string(ranks));
  }
};

/// The same as what an exchange asks for. Of other ranks only what concerns this one is known.
struct listed_parts {
  message_table table;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range sent(int from, int to) const noexcept {
    if (from == table.rank) return table.sent[to];
    return {0, table.got[from].size};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t lands(int from, int to) const noexcept {
    return from == table.rank ? table.there[to] : table.got[from].begin;
  }
};

/// The table of a rank for parts of any kind.
template <class Parts>
[[nodiscard]] message_table messages_of(const Parts& parts, int ranks, int rank) {
  message_table table(ranks, rank);
  for (int peer = 0; peer < ranks; ++peer) {
    table.sent[peer] = parts.sent(rank, peer);
    table.got[peer] = {parts.lands(peer, rank), parts.sent(peer, rank).size};
    table.there[peer] = parts.lands(rank, peer);
    for (int to = 0; to < ranks; ++to)
      table.largest = std::max(table.largest, parts.sent(peer, to).size);
  }
  return table;
}

}  // namespace untax::gpu
