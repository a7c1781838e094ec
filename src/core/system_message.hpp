#pragma once

#include <string>
#include <system_error>

namespace untax {

/// The system's message for the errno `number`. It replaces strerror, which need not be safe to
/// call from several threads.
inline std::string system_message(int number) { return std::generic_category().message(number); }

}  // namespace untax
