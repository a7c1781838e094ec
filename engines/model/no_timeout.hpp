#pragma once

#include <cstdint>

#include <untax/flow/wait.hpp>

namespace untax::model {

/// A wait guard that waits as long as it takes: the checker itself notices when nobody moves any
/// more.
struct no_timeout {
  [[nodiscard]] static wait_outcome look(const wait_site& /*site*/, std::uint64_t /*seen*/) {
    return wait_outcome::ok;
  }
  static void leave() {}
  [[nodiscard]] static bool due(poll_count /*polls*/) { return false; }
};

static_assert(wait_guard<no_timeout>);

}  // namespace untax::model
