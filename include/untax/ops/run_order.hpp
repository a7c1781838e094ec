#pragma once

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Makes runs of the collective operators of `w` that are called from now on begin after the work
/// that `stream` has now, whatever their streams, also in a graph if the stream is being captured.
/// It is for work between runs that uses data that peers write, such as a copy of an operator's
/// `result()`. It does nothing in a world of the host. Throws `unsupported` and `internal`.
void let_runs_follow(world& w, stream_ref stream);

}  // namespace untax
