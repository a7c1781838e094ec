#pragma once

#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/host/convert.hpp"

#if defined(__SANITIZE_THREAD__)
#define UNTAX_MARKS_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNTAX_MARKS_RACES 1
#endif
#endif

#ifdef UNTAX_MARKS_RACES
extern "C" void __tsan_read_range(void* address,
                                  unsigned long size);  // NOLINT(bugprone-reserved-identifier)
extern "C" void __tsan_write_range(void* address,
                                   unsigned long size);  // NOLINT(bugprone-reserved-identifier)
#endif

namespace untax::host {

/// OpenBLAS is not built with ThreadSanitizer, so what it reads and writes would go unseen. These
/// marks tell the sanitizer; without it they are nothing.
inline void mark_read([[maybe_unused]] const tile_memory& tile, [[maybe_unused]] std::int64_t rows,
                      [[maybe_unused]] std::int64_t cols) {
#ifdef UNTAX_MARKS_RACES
  const auto size = static_cast<std::int64_t>(size_of(tile.type));
  for (std::int64_t i = 0; i < rows; ++i) {
    __tsan_read_range(tile.data + i * tile.stride * size, static_cast<unsigned long>(cols * size));
  }
#endif
}

inline void mark_write([[maybe_unused]] const tile_memory& tile, [[maybe_unused]] std::int64_t rows,
                       [[maybe_unused]] std::int64_t cols) {
#ifdef UNTAX_MARKS_RACES
  const auto size = static_cast<std::int64_t>(size_of(tile.type));
  for (std::int64_t i = 0; i < rows; ++i) {
    __tsan_write_range(tile.data + i * tile.stride * size, static_cast<unsigned long>(cols * size));
  }
#endif
}

}  // namespace untax::host
