#pragma once

#include <cstdint>
#include <string_view>

#include "handles.hpp"

namespace untax::c {

/// Called in a handler: keeps what was thrown as the last error of this thread, and returns its
/// status. `w` knows who is suspected; null where there is no world.
std::int32_t keep_failure(const untax_world* w) noexcept;

/// Refuses a null pointer.
void require(const void* p, std::string_view name);

/// What every function of the ABI does around its body: nothing is thrown out of it.
template <class Body>
[[nodiscard]] std::int32_t guarded(const untax_world* w, const Body& body) noexcept {
  try {
    body();
    return untax_ok;
  } catch (...) {
    return keep_failure(w);
  }
}

}  // namespace untax::c
