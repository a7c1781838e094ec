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

/// How many runs one graph holds, if one takes about so many seconds: enough that what surrounds
/// them does not count.
[[nodiscard]] int runs_in_graph(double seconds) noexcept;

/// The seconds of one of several runs that follow each other in a CUDA graph: the median of some
/// launches of it, after some that warm up, by the rank that takes longest. `launch(run, stream)`
/// launches run number `run`, the last of which is run 0, on a stream of the rank's GPU, which is
/// the current device; the first time alone. Collective; every rank gets the same. Waits; throws
/// `internal` if a kernel failed, what stopped the world, and what `launch` throws.
[[nodiscard]] double seconds_in_graph(
    world& w, const std::function<void(int run, stream_ref stream)>& launch);

/// The place of the least value.
[[nodiscard]] int least_of(const std::vector<double>& values) noexcept;

/// What each rank of a world of GPUs says, one after the other. Collective.
[[nodiscard]] std::vector<double> values_of_ranks(world& w, const std::vector<double>& mine);

/// By the rank that takes longest. Collective; every rank gets the same.
[[nodiscard]] std::vector<double> longest_of_ranks(world& w, const std::vector<double>& seconds);

}  // namespace untax::bulk
