#pragma once

#include <functional>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

namespace untax::bulk {

/// Times alternatives: runs each of `ways` ways a few times, in turn, and returns the median
/// seconds of each. `run(way, round, stream)` launches one on a stream of the current device.
/// Blocks; throws `internal` if a kernel failed.
[[nodiscard]] std::vector<double> seconds_of(
    int ways, const std::function<void(int way, int round, stream_ref stream)>& run);

/// The number of runs to put into one graph, if one run takes about `seconds`: enough that the time
/// around them is negligible.
[[nodiscard]] int runs_in_graph(double seconds) noexcept;

/// The seconds of one run in a CUDA graph of several consecutive runs, at the slowest rank: the
/// median over some launches of the graph, after warm-up. `launch(run, stream)` launches run `run`
/// on a stream of the rank's GPU, which is the current device. Runs count down to 0; run 0 is first
/// launched alone. Collective; every rank gets the same. Blocks; throws `internal` if a kernel
/// failed, the error that stopped the world, and the errors of `launch`.
[[nodiscard]] double seconds_in_graph(
    world& w, const std::function<void(int run, stream_ref stream)>& launch);

/// The index of the least value.
[[nodiscard]] int least_of(const std::vector<double>& values) noexcept;

/// The values of all ranks of a world of GPUs, in the order of ranks. Collective.
[[nodiscard]] std::vector<double> values_of_ranks(world& w, const std::vector<double>& mine);

/// The maximum over all ranks of each value. Collective; every rank gets the same.
[[nodiscard]] std::vector<double> longest_of_ranks(world& w, const std::vector<double>& seconds);

}  // namespace untax::bulk
