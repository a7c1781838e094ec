#pragma once

#include <string>
#include <vector>

#include <untax/symmetric/segment.hpp>
#include <untax/world/placement.hpp>

#include "descriptor.hpp"
#include "meeting_place.hpp"
#include "own_share.hpp"
#include "settings.hpp"

namespace untax {

/// The data with which a process takes part in a world.
struct membership {
  segment memory;
  std::vector<int> processes;      ///< process ids by rank; 0: not visible in this namespace
  std::vector<descriptor> shares;  ///< by rank, of worlds of GPUs
  std::vector<device_id> devices;  ///< by rank
  /// Connections that stay open: at rank 0 one to each other rank, in rank order; at other ranks
  /// one to rank 0.
  std::vector<unix_socket> links;
};

/// The settings that a rank sends to rank 0. They have to be the same at all ranks.
[[nodiscard]] std::string introduction(const own_share& mine, const settings& s);

/// Called at rank 0: waits for the others at `place`, compares their introductions, and sends them
/// the segment. Throws, and sends to the others, `disagreement`, `timeout` if ranks do not come,
/// `peer_lost` if one ends meanwhile, and the error of a rank that cannot take part.
[[nodiscard]] membership gather_ranks(const placement& p, const settings& s, const own_share& mine,
                                      meeting_place& place);

/// Called at every other rank: finds rank 0 and gets the segment from it.
[[nodiscard]] membership join_rank_0(const placement& p, const settings& s, const own_share& mine,
                                     const meeting_place& place);

}  // namespace untax
