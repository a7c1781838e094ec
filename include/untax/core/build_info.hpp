#pragma once

#include <string_view>

namespace untax {

/// The commit that the library was built from ("1786cea0a1b2", with "-dirty" after local changes),
/// or "unknown".
[[nodiscard]] std::string_view build_commit() noexcept;

}  // namespace untax
