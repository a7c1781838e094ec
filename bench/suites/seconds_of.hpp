#pragma once

#include <cstdint>

#include <untax/memory/host_memory.hpp>

namespace untax::bench {

/// The seconds that a call takes.
template <class Work>
[[nodiscard]] double seconds_of(const Work& work) {
  const std::uint64_t begin = host_memory::now();
  work();
  return static_cast<double>(host_memory::now() - begin) * 1e-9;
}

}  // namespace untax::bench
