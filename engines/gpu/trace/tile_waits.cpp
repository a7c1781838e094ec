#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "engines/gpu/trace/warp_events.hpp"

namespace untax::gpu {
namespace {

bool multiplies(const trace_span& span) {
  return span.kind == trace_kind::action && span.what == static_cast<int>(action::multiply);
}

/// The median time of the multiplications of a tile.
std::uint64_t usual_time(const std::vector<warp_events>& warps) {
  std::vector<std::uint64_t> times;
  for (const warp_events& warp : warps) {
    for (const trace_span& span : warp.others)
      if (multiplies(span)) times.push_back(span.end - span.begin);
  }
  std::ranges::sort(times);
  return times.empty() ? 0 : times[times.size() / 2];
}

/// The blocks of one cluster of a kernel, which work together: kernel group and cluster number.
using cluster_place = std::pair<int, int>;

cluster_place place_of(const warp_ring& ring, const warp_events& warp) {
  return {ring.group, ring.block / warp.cluster};
}

/// Sorted by their ends.
using waits_by_end = std::vector<trace_span>;

/// The waits of producers and pollers.
std::map<cluster_place, waits_by_end> waits_of(const std::vector<warp_ring>& rings,
                                               const std::vector<warp_events>& warps) {
  std::map<cluster_place, waits_by_end> waits_of_clusters;
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const auto& kernels = warps[w].kernels;
    const warp_role role = kernels.empty() ? warp_role::none : kernels.front().role;
    if (role != warp_role::producer && role != warp_role::poller) continue;
    for (const trace_span& span : warps[w].others) {
      if (span.kind == trace_kind::wait)
        waits_of_clusters[place_of(rings[w], warps[w])].push_back(span);
    }
  }
  for (auto& [place, waits] : waits_of_clusters) std::ranges::sort(waits, {}, &trace_span::end);
  return waits_of_clusters;
}

/// The longest of the waits that end within a tile's span, clipped to that span.
std::optional<trace_span> longest_in(const waits_by_end& waits, const trace_span& tile) {
  std::optional<trace_span> longest;
  auto it = std::ranges::upper_bound(waits, tile.begin, {}, &trace_span::end);
  for (; it != waits.end() && it->end <= tile.end; ++it) {
    trace_span part = *it;
    part.begin = std::max(part.begin, tile.begin);
    if (!longest || part.end - part.begin >= longest->end - longest->begin) longest = part;
  }
  return longest;
}

}  // namespace

void share_waits(const std::vector<warp_ring>& rings, std::vector<warp_events>& warps) {
  const std::uint64_t usual = usual_time(warps);
  const std::map<cluster_place, waits_by_end> waits = waits_of(rings, warps);
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const auto match = waits.find(place_of(rings[w], warps[w]));
    if (match == waits.end()) continue;
    std::vector<trace_span> shared;
    for (const trace_span& tile : warps[w].others) {
      if (!multiplies(tile) || tile.end - tile.begin <= usual) continue;
      std::optional<trace_span> wait = longest_in(match->second, tile);
      if (!wait) continue;
      const std::uint64_t longer = tile.end - tile.begin - usual;
      wait->begin = std::max(wait->begin, wait->end - std::min(wait->end, longer));
      shared.push_back(*wait);
    }
    std::ranges::copy(shared, std::back_inserter(warps[w].others));
  }
}

}  // namespace untax::gpu
