#pragma once

#include "engines/gpu/launch/whole_run.hpp"

namespace untax {

/// Launches a run of bulk_library in order, by the rule of `whole_run`: if a launch fails after
/// others, the world is stopped with the reason. A gather that fails counts as begun, since peers
/// may have joined the part of it that this rank launched. `gather()`, `multiply()`, `join()`
/// launch.
template <class Gather, class Multiply>
void gather_then_multiply(world& w, const Gather& gather, const Multiply& multiply) {
  gpu::whole_run all(w);
  all.all_of(gather);
  all(multiply);
}

/// As above, for a result that is gathered and then laid out.
template <class Multiply, class Gather, class Join>
void multiply_then_gather(world& w, const Multiply& multiply, const Gather& gather,
                          const Join& join) {
  gpu::whole_run all(w);
  all(multiply);
  all.all_of(gather);
  all(join);
}

}  // namespace untax
