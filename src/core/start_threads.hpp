#pragma once

#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace untax {

/// Starts body(0) ... body(count - 1), each in a thread of its own, which goes behind those in
/// `threads`. If one cannot be made, throws `out_of_memory` that says how many there were; these
/// stay in `threads`, and run. `who` is what they work for, as it begins the error.
void start_threads(std::vector<std::thread>& threads, int count, std::string_view who,
                   const std::function<void(int)>& body);

/// The same for one.
[[nodiscard]] std::thread start_thread(std::string_view who, std::function<void()> body);

}  // namespace untax
