#pragma once

#include <string>
#include <system_error>

namespace untax {

/// What the system calls the failure `number` (an errno), as strerror does, which is not safe among
/// threads.
inline std::string system_message(int number) { return std::generic_category().message(number); }

}  // namespace untax
