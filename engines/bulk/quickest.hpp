#pragma once

#include <functional>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

namespace untax::bulk {

/// Runs each of `ways` ways of doing something a few times, in turn, and returns the seconds that
/// each took, the median. `run(way, round, stream)` launches it on a stream of the current device.
/// Waits; throws `internal` if a kernel failed.
[[nodiscard]] std::vector<double> seconds_of(
    int ways, const std::function<void(int way, int round, stream_ref stream)>& run);

/// The place of the least value.
[[nodiscard]] int least_of(const std::vector<double>& values) noexcept;

/// What each rank of a world of GPUs says, one after the other. Collective.
[[nodiscard]] std::vector<double> values_of_ranks(world& w, const std::vector<double>& mine);

/// By the rank that takes longest. Collective; every rank gets the same.
[[nodiscard]] std::vector<double> longest_of_ranks(world& w, const std::vector<double>& seconds);

}  // namespace untax::bulk
