#pragma once

#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace untax {

/// Starts body(0) ... body(count - 1), each in its own thread, and appends the threads to
/// `threads`. If one cannot be created, throws `out_of_memory` with the number that were started;
/// these stay in `threads` and run. The error begins with `who`, the owner of the threads.
void start_threads(std::vector<std::thread>& threads, int count, std::string_view who,
                   const std::function<void(int)>& body);

/// Starts one thread in the same way.
[[nodiscard]] std::thread start_thread(std::string_view who, std::function<void()> body);

}  // namespace untax
