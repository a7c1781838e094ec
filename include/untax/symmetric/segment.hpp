#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <untax/core/memory_kind.hpp>
#include <untax/core/types.hpp>
#include <untax/symmetric/device_arenas.hpp>

namespace untax {

/// How a segment is divided: a control region, which is host memory, then one arena for each rank,
/// each rounded up to whole pages.
struct segment_layout {
  static constexpr std::size_t page = 4096;
  /// Behind an arena in device memory, room for the word that stops kernels, in a line of its own.
  static constexpr std::size_t stop_bytes = 512;

  int ranks = 1;
  std::size_t control_bytes = 0;
  std::size_t arena_bytes = 0;
  memory_kind memory = memory_kind::host;  ///< of the arenas
  std::size_t arena_page = page;           ///< arenas are made of pages of this size

  [[nodiscard]] constexpr std::size_t control_span() const noexcept {
    return round_up(control_bytes, page);
  }
  /// Distance between the arenas of neighbouring ranks.
  [[nodiscard]] constexpr std::size_t arena_span() const noexcept {
    return round_up(arena_bytes + (memory == memory_kind::cuda ? stop_bytes : 0), arena_page);
  }
  [[nodiscard]] constexpr std::size_t all_arenas() const noexcept {
    return static_cast<std::size_t>(ranks) * arena_span();
  }
  /// Bytes of host memory.
  [[nodiscard]] constexpr std::size_t total() const noexcept {
    return control_span() + (memory == memory_kind::host ? all_arenas() : 0);
  }
};

/// The control region and the arenas of all ranks, zero at first. In host memory they are one
/// mapping, whose pages take memory when they are first touched. In device memory the arenas are
/// mapped elsewhere, side by side; `put_arenas` says where.
///
/// In a world of threads every rank uses the same segment (two mappings of the same memory would
/// hide races from ThreadSanitizer); in a world of processes each maps the same file, at an address
/// of its own.
class segment {
 public:
  /// Memory of this process. Throws `out_of_memory`.
  [[nodiscard]] static segment anonymous(const segment_layout& layout);
  /// Memory behind a file descriptor (a memfd) that other processes can attach. Throws
  /// `out_of_memory`.
  [[nodiscard]] static segment shareable(const segment_layout& layout);
  /// Maps what another process made. Takes the descriptor over. Throws `invalid_argument` if its
  /// size is not that of `layout`.
  [[nodiscard]] static segment attach(int descriptor, const segment_layout& layout);

  /// Takes over the arenas of a layout whose memory is not that of the host.
  void put_arenas(std::unique_ptr<device_arenas> arenas) noexcept;
  /// The arenas, if they are in device memory, or null.
  [[nodiscard]] const device_arenas* devices() const noexcept { return devices_.get(); }

  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  [[nodiscard]] const segment_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] int ranks() const noexcept { return layout_.ranks; }
  [[nodiscard]] std::byte* control() const noexcept { return base_; }
  [[nodiscard]] std::byte* arena(int rank) const noexcept;
  /// The word behind the arena of `rank` that stops its kernels; device memory only.
  [[nodiscard]] std::uint64_t* stop_word(int rank) const noexcept;
  /// Sets bytes of the arena of `rank`, which belongs to this process.
  void fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const;
  /// How many of the bytes of the arena of `rank` have that value, up to the first that has not.
  [[nodiscard]] std::size_t matching(int rank, const std::byte* at, std::byte value,
                                     std::size_t bytes) const;
  /// Whether loads and stores of this process reach the arena of `peer`. Ask before you use
  /// `translate`: a world over several hosts has peers that only messages reach.
  [[nodiscard]] bool reachable(int peer) const noexcept {
    return peer >= 0 && peer < layout_.ranks;
  }
  /// The rank whose arena holds all of [p, p + bytes), or -1.
  [[nodiscard]] int owner_of(const void* p, std::size_t bytes = 1) const noexcept;
  /// The copy at `peer` of what `p` points to in any arena. Throws `not_symmetric` if it lies in
  /// none, and `invalid_argument` if there is no such peer.
  [[nodiscard]] void* translate(const void* p, int peer) const;

  /// The descriptor of a shareable segment until `close_descriptor`; -1 otherwise. The mapping
  /// stays without it.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
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
