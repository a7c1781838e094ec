#pragma once

#include <cstdint>

#include <untax/flow/wait.hpp>

namespace untax::model {

/// A wait guard without a timeout. The checker itself detects that no thread makes progress.
struct no_timeout {
  [[nodiscard]] static wait_outcome look(const wait_site& /*site*/, std::uint64_t /*seen*/) {
    return wait_outcome::ok;
  }
  static void leave() {}
  [[nodiscard]] static bool due(poll_count /*polls*/) { return false; }
};

static_assert(wait_guard<no_timeout>);

}  // namespace untax::model
