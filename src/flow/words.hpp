#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace untax::words {

/// Atomic access to the words of the control block. Every store is a release and every load an
/// acquire: a reader that sees one store of a rank sees all earlier stores of that rank, so an
/// entry is intact if its first word is the same before and after the rest was read.
inline std::uint64_t load(const std::uint64_t& word) noexcept {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word))
      .load(std::memory_order_acquire);
}

inline void store(std::uint64_t& word, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

/// Stores as much of `text` as fits, and zeros behind it up to a whole word. Returns the stored
/// length.
inline std::size_t store_text(std::span<std::uint64_t> to, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), to.size_bytes());
  for (std::size_t done = 0; done < length; done += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + done, std::min(length - done, sizeof word));
    store(to[done / sizeof word], word);
  }
  return length;
}

inline std::string load_text(std::span<const std::uint64_t> from, std::size_t length) {
  std::string text(std::min(length, from.size_bytes()), '\0');
  for (std::size_t done = 0; done < text.size(); done += sizeof(std::uint64_t)) {
    const std::uint64_t word = load(from[done / sizeof word]);
    std::memcpy(text.data() + done, &word, std::min(text.size() - done, sizeof word));
  }
  return text;
}

}  // namespace untax::words
