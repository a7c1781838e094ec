#pragma once

#include <cstdint>
#include <string_view>

#include "handles.hpp"

namespace untax::c {

/// Must be called in a catch handler. Stores the current exception as the last error of this thread
/// and returns its status. The suspect is taken from `w`, which may be null.
std::int32_t keep_failure(const untax_world* w) noexcept;

/// Throws `invalid_argument` if `p` is null.
void require(const void* p, std::string_view name);

/// Runs the body of an ABI function. Throws nothing: an exception becomes the last error.
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
