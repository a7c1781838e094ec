#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace untax {

/// The start of a process in clock ticks since boot; 0 if the process cannot be seen. Together with
/// the process id it identifies a process, since ids are reused.
[[nodiscard]] std::uint64_t start_of(int process);

/// Identifies the process namespace of this process. A process id is valid only within it.
[[nodiscard]] std::uint32_t process_namespace();

/// The process that set `variable` ("RANK=3"): the nearest ancestor whose own environment did not
/// have it at its start. Programs in between, such as timeout or a script, have it, too.
[[nodiscard]] int who_set(std::string_view variable);

/// A text for that ancestor: "child of process 17, which started at 4711".
[[nodiscard]] std::string launcher_process(std::string_view variable);

}  // namespace untax
