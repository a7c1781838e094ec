#pragma once

#include <untax/flow/wait.hpp>

namespace untax::gpu {

/// Of a wait for what comes in any case, from a role of the same block, or from blocks of the same
/// launch that have started before: nobody has to be named. It may look a number of times only, and
/// ends as `timeout` then.
struct bounded_watch {
  static constexpr poll_count no_bound = ~poll_count{0};

  poll_count most = no_bound;

  [[nodiscard]] __device__ bool due(poll_count polls) const { return polls >= most; }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& /*site*/,
                                             std::uint64_t /*seen*/) const {
    return most == no_bound ? wait_outcome::ok : wait_outcome::timeout;
  }
  __device__ void leave() const {}
};

}  // namespace untax::gpu
