#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <untax/core/memory_kind.hpp>
#include <untax/core/types.hpp>
#include <untax/symmetric/device_arenas.hpp>

namespace untax {

/// The layout of a segment: a control region, which is host memory, then one arena for each rank.
/// Each part is rounded up to whole pages. Sizes are in bytes. Arenas in device memory are ranges
/// of addresses of which only the beginning has memory at first; heaps grow into the rest.
struct segment_layout {
  static constexpr std::size_t page = 4096;
  /// Bytes before an arena in device memory, for the word that stops kernels. It has cache lines of
  /// its own.
  static constexpr std::size_t stop_bytes = 512;

  int ranks = 1;
  std::size_t control_bytes = 0;
  std::size_t arena_bytes = 0;
  memory_kind memory = memory_kind::host;  ///< the memory of the arenas
  std::size_t arena_page = page;           ///< page size of the arenas
  std::size_t first_bytes = 0;  ///< the part of an arena in device memory that has memory at first;
                                ///< 0: all

  [[nodiscard]] constexpr std::size_t control_span() const noexcept {
    return round_up(control_bytes, page);
  }
  /// Bytes from the arena of a rank to that of the next one.
  [[nodiscard]] constexpr std::size_t arena_span() const noexcept {
    return round_up(arena_bytes + (memory == memory_kind::cuda ? stop_bytes : 0), arena_page);
  }
  /// Bytes of the range of an arena that have memory at first, from its start: whole pages.
  [[nodiscard]] constexpr std::size_t first_span() const noexcept {
    if (memory == memory_kind::host || first_bytes == 0) return arena_span();
    const std::size_t first = round_up(first_bytes + stop_bytes, arena_page);
    return first < arena_span() ? first : arena_span();
  }
  /// Bytes of an arena that can be used at first.
  [[nodiscard]] constexpr std::size_t first_arena() const noexcept {
    const std::size_t usable = first_span() - (memory == memory_kind::cuda ? stop_bytes : 0);
    return usable < arena_bytes ? usable : arena_bytes;
  }
  [[nodiscard]] constexpr std::size_t all_arenas() const noexcept {
    return static_cast<std::size_t>(ranks) * arena_span();
  }
  /// Bytes of host memory of the segment.
  [[nodiscard]] constexpr std::size_t total() const noexcept {
    return control_span() + (memory == memory_kind::host ? all_arenas() : 0);
  }
};

/// The control region and the arenas of all ranks, zero at first. In host memory they are one
/// mapping, whose pages take memory when they are first touched. In device memory the arenas are
/// mapped elsewhere, side by side; `put_arenas` adds them.
///
/// In a world of threads all ranks use the same segment, since two mappings of the same memory
/// would hide races from ThreadSanitizer. In a world of processes each process maps the same file
/// at an address of its own.
class segment {
 public:
  /// A segment in memory of this process. Throws `out_of_memory`.
  [[nodiscard]] static segment anonymous(const segment_layout& layout);
  /// A segment behind a file descriptor (a memfd) that other processes can attach. Throws
  /// `out_of_memory`.
  [[nodiscard]] static segment shareable(const segment_layout& layout);
  /// Maps a segment that another process made. It takes ownership of the descriptor. Throws
  /// `invalid_argument` if its size is not that of `layout`, and `out_of_memory` if it cannot be
  /// mapped.
  [[nodiscard]] static segment attach(int descriptor, const segment_layout& layout);

  /// Takes over the arenas, if the layout has them in device memory.
  void put_arenas(std::unique_ptr<device_arenas> arenas) noexcept;
  /// The arenas if they are in device memory, else null.
  [[nodiscard]] const device_arenas* devices() const noexcept { return devices_.get(); }
  [[nodiscard]] device_arenas* devices() noexcept { return devices_.get(); }

  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  [[nodiscard]] const segment_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] int ranks() const noexcept { return layout_.ranks; }
  /// The address of the control region.
  [[nodiscard]] std::byte* control() const noexcept { return base_; }
  /// The address of the arena of `rank`. With arenas in device memory the host must not access it.
  [[nodiscard]] std::byte* arena(int rank) const noexcept;
  /// The word before the arena of `rank` that stops its kernels; device memory only.
  [[nodiscard]] std::uint64_t* stop_word(int rank) const noexcept;
  /// Sets `bytes` bytes at `at` to `value`, in the arena of a rank of this process.
  void fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const;
  /// The number of bytes from `at` on that equal `value`, up to the first that does not, and at
  /// most `bytes`. `at` is in the arena of `rank`, a rank of this process.
  [[nodiscard]] std::size_t matching(int rank, const std::byte* at, std::byte value,
                                     std::size_t bytes) const;
  /// Whether loads and stores of this process reach the arena of `peer`. Callers have to ask before
  /// `translate`: in a world of several hosts some peers are reached only by messages.
  [[nodiscard]] bool reachable(int peer) const noexcept {
    return peer >= 0 && peer < layout_.ranks;
  }
  /// The rank whose arena contains all of [p, p + bytes), or -1.
  [[nodiscard]] int owner_of(const void* p, std::size_t bytes = 1) const noexcept;
  /// The address of the copy, at `peer`, of the data at `p` in any arena. Throws `not_symmetric` if
  /// `p` is in none of them, and `invalid_argument` if there is no such peer.
  [[nodiscard]] void* translate(const void* p, int peer) const;

  /// The descriptor of a shareable segment until `close_descriptor`, else -1. Closing it does not
  /// unmap the segment.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Closes the descriptor, if there is one.
  void close_descriptor() noexcept;

 private:
  segment(std::byte* base, const segment_layout& layout, int descriptor) noexcept
      : base_(base), layout_(layout), descriptor_(descriptor) {}

  std::byte* base_ = nullptr;
  segment_layout layout_;
  int descriptor_ = -1;
  std::unique_ptr<device_arenas> devices_;
};

}  // namespace untax
