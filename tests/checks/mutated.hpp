#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <untax/core/half.hpp>
#include <untax/core/matrix.hpp>

namespace checks_test {

inline constexpr std::size_t word = 16;  ///< bytes that a GPU stores at once

/// Bytes that become wrong, and right again at the end.
class mutated_bytes {
 public:
  mutated_bytes(void* at, std::size_t bytes)
      : at_(static_cast<std::byte*>(at)), kept_(at_, at_ + bytes) {}
  mutated_bytes(const mutated_bytes&) = delete;
  mutated_bytes& operator=(const mutated_bytes&) = delete;
  ~mutated_bytes() { std::ranges::copy(kept_, at_); }

 private:
  std::byte* at_;
  std::vector<std::byte> kept_;
};

/// Wants `error()` to be at most `tolerance`, and above it with each mutation of a result of
/// 16-bit elements: a word of 16 bytes from another place, a word that was never written, a NaN,
/// an infinity, and a word of zeros.
template <class Element, class Error>
void expect_seen(std::span<Element> result, double tolerance, const Error& error) {
  static_assert(sizeof(Element) == 2);
  ASSERT_LE(error(), tolerance);
  constexpr std::size_t in_word = word / sizeof(Element);
  ASSERT_GE(result.size(), 3 * in_word);
  for (const std::size_t at : {std::size_t{0}, result.size() / 2 / in_word * in_word,
                               (result.size() / in_word - 1) * in_word}) {
    SCOPED_TRACE("element " + std::to_string(at) + " of " + std::to_string(result.size()));
    const auto expect_above = [&](const char* what, const auto& change) {
      const mutated_bytes kept(&result[at], word);
      change(&result[at]);
      EXPECT_GT(error(), tolerance) << what;
    };
    expect_above("a word from elsewhere", [&](Element* word_of_memory) {
      std::memcpy(static_cast<void*>(word_of_memory),
                  &result[(at + result.size() / 3) / in_word * in_word % result.size()], word);
    });
    expect_above("a word that nobody wrote",
                 [](void* word_of_memory) { std::memset(word_of_memory, 0xff, word); });
    expect_above("zeros", [](void* word_of_memory) { std::memset(word_of_memory, 0, word); });
    expect_above("NaN", [](Element* word_of_memory) {
      *word_of_memory = Element(std::numeric_limits<float>::quiet_NaN());
    });
    expect_above("infinity", [](Element* word_of_memory) {
      *word_of_memory = Element(std::numeric_limits<float>::infinity());
    });
  }
  EXPECT_LE(error(), tolerance);
}

/// The elements of a matrix without gaps.
template <class Element>
[[nodiscard]] std::span<Element> elements_of(const untax::matrix& m) {
  return {static_cast<Element*>(m.data), static_cast<std::size_t>(m.rows * m.cols)};
}

}  // namespace checks_test
