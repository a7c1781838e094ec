#include <untax/world/trace_ids.hpp>

#include <random>

namespace untax {
namespace {

std::uint64_t random_number() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32U | source();
}

/// The address of the world's state in the process of this rank, plus a random number of that
/// process.
std::uint64_t number_of_world(const world& w) {
  static const std::uint64_t of_process = random_number();
  return of_process +
         static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&w.state().stop_flag()));
}

}  // namespace

trace_ids new_trace_ids(const world& w) { return {random_number(), number_of_world(w)}; }

trace_ids new_trace_ids() { return {random_number(), random_number()}; }

}  // namespace untax
