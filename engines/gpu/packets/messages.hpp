#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <untax/core/error.hpp>
#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// The messages that one rank sends and receives, in elements. The table is small enough for a
/// kernel argument, and the kernel need not compute messages from sizes and ranks.
struct message_table {
  int ranks = 1;
  int rank = 0;
  range sent[most_ranks];               ///< of the input, by receiver
  range got[most_ranks];                ///< of the result, by source
  std::int64_t there[most_ranks] = {};  ///< by receiver: where `sent` begins in that result
  /// The largest message between any two ranks, since symmetric memory has one size at all ranks.
  std::int64_t largest = 0;
  bool any_count = false;  ///< runs may have any count; `largest` is for the highest

  message_table() = default;
  /// Throws `unsupported` for too many ranks.
  message_table(int all, int own) : ranks(all), rank(own) {
    if (ranks <= most_ranks) return;
    throw error(errc::unsupported, "rank " + std::to_string(rank) + ": collectives on GPUs have " +
                                       std::to_string(most_ranks) +
                                       " ranks at most; this world has " + std::to_string(ranks));
  }
};

/// A table as the `Parts` of an exchange. Messages between two other ranks are not known.
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

/// The table of a rank for parts of any type.
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
