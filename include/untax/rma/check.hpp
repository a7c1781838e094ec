#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <untax/core/error.hpp>
#include <untax/symmetric/heap_watch.hpp>

namespace untax {

/// Types that verbs can move: their value is their bytes.
template <class T>
concept transferable = std::is_trivially_copyable_v<T> && !std::is_const_v<T>;

}  // namespace untax

// The checks that verbs make before they touch memory. They are always on: they cost a few
// compares, next to a memcpy or a cache miss. A build type that changes the meaning of a header
// would break programs that mix two of them.
namespace untax::detail {

/// "[0x7f01, 0x7f09)" for 8 bytes at 0x7f01. Text is only appended: for text that is put in front,
/// GCC 12 warns of overlaps that do not exist, in every program that includes this with -O3 -Wall.
[[nodiscard]] inline std::string text_of(std::uintptr_t begin, std::size_t bytes) {
  std::string text = "[";
  const auto append = [&text](std::uintptr_t address) {
    char digits[2 * sizeof(address)];
    const auto end = std::to_chars(digits, digits + sizeof(digits), address, 16).ptr;
    text.append("0x").append(digits, end);
  };
  append(begin);
  text += ", ";
  append(begin + bytes);
  text += ')';
  return text;
}

[[noreturn]] inline void refuse(std::string_view verb, const std::string& what) {
  throw error(errc::invalid_argument, "untax::" + std::string(verb) + ": " + what);
}

[[nodiscard]] inline std::uintptr_t address_of(const volatile void* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p);
}

// The texts are made out of line, so that a check is a compare and a jump.

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] inline void refuse_count(std::string_view verb,
                                                                      std::string_view of,
                                                                      std::int64_t count,
                                                                      std::int64_t most) {
  refuse(verb, "the number of " + std::string(of) + " is " + std::to_string(count) +
                   "; it must be from 0 to " + std::to_string(most));
}

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] inline void refuse_address(std::string_view verb,
                                                                        std::string_view name,
                                                                        std::uintptr_t address,
                                                                        std::size_t alignment) {
  if (address == 0) {
    refuse(verb,
           "the " + std::string(name) + " is null; pass an address of symmetric or local memory");
  }
  refuse(verb, "the " + std::string(name) + " at " + text_of(address, alignment) +
                   " is misaligned; its address must be a multiple of " +
                   std::to_string(alignment));
}

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] inline void refuse_overlap(std::string_view verb,
                                                                        std::uintptr_t to,
                                                                        std::uintptr_t from,
                                                                        std::size_t bytes) {
  refuse(verb, "the destination " + text_of(to, bytes) + " overlaps the source " +
                   text_of(from, bytes) + "; they must not share a byte");
}

/// Refuses a negative number of elements, and one whose size in bytes overflows.
template <class T>
void check_count(std::string_view verb, std::string_view of, std::int64_t count) {
  constexpr auto most =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(T));
  if (count < 0 || count > most) [[unlikely]]
    refuse_count(verb, of, count, most);
}

/// Refuses null, and an address that is not a multiple of `alignment`, a power of two.
inline void check_address(std::string_view verb, std::string_view name, const volatile void* p,
                          std::size_t alignment) {
  const std::uintptr_t address = address_of(p);
  if (address == 0 || (address & (alignment - 1)) != 0) [[unlikely]] {
    refuse_address(verb, name, address, alignment);
  }
}

[[gnu::cold]] [[gnu::noinline]] inline void refuse_outside(std::string_view verb,
                                                           std::string_view name,
                                                           const volatile void* p,
                                                           std::size_t bytes) {
  const std::string wrong = outside_allocations(p, bytes);
  if (wrong.empty()) return;
  refuse(verb, "the " + std::string(name) + " " + text_of(address_of(p), bytes) + " " + wrong +
                   "; all of it must lie in one allocation");
}

/// Refuses `bytes` bytes that begin in a heap with guards and are not all within one allocation.
inline void check_inside(std::string_view verb, std::string_view name, const volatile void* p,
                         std::size_t bytes) {
  if (heaps_are_guarded()) [[unlikely]]
    refuse_outside(verb, name, p, bytes);
}

/// Refuses two regions of `bytes` bytes that share a byte.
inline void check_apart(std::string_view verb, const volatile void* to, const volatile void* from,
                        std::size_t bytes) {
  const std::uintptr_t a = address_of(to);
  const std::uintptr_t b = address_of(from);
  if (a < b + bytes && b < a + bytes) [[unlikely]]
    refuse_overlap(verb, a, b, bytes);
}

}  // namespace untax::detail
