#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace untax {

/// When a process started, in ticks since the machine did: with the process id it tells processes
/// apart that had the same one in turn. 0 if it cannot be seen.
[[nodiscard]] std::uint64_t start_of(int process);

/// Names the process namespace of this process; process ids mean something within it only.
[[nodiscard]] std::uint32_t process_namespace();

/// Who started this process with `variable` ("RANK=3"): its nearest ancestor that was not started
/// with it. What lies between, such as timeout or a script, was started as the rank, too.
[[nodiscard]] int who_set(std::string_view variable);

/// "child of process 17, which started at 4711", of that ancestor.
[[nodiscard]] std::string launcher_process(std::string_view variable);

}  // namespace untax
