#include "src/core/start_threads.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {

void start_threads(std::vector<std::thread>& threads, int count, std::string_view who,
                   const std::function<void(int)>& body) {
  int started = 0;
  try {
    threads.reserve(threads.size() + static_cast<std::size_t>(count));
    for (; started < count; ++started) threads.emplace_back(body, started);
  } catch (const std::exception& e) {
    throw error(errc::out_of_memory,
                fmt::format("{}: {} threads were asked for, and {} could be started: {}. Raise the "
                            "limit of threads (ulimit -u, pids.max of a container) or of memory "
                            "(ulimit -v), or ask for fewer",
                            who, count, started, e.what()));
  }
}

std::thread start_thread(std::string_view who, std::function<void()> body) {
  std::vector<std::thread> first_thread;
  start_threads(first_thread, 1, who, [call = std::move(body)](int) { call(); });
  return std::move(first_thread.front());
}

}  // namespace untax
