#pragma once

#include <cstddef>

#include <untax/core/types.hpp>

namespace untax {

/// How a segment is divided: a control region, then one arena for each rank, each rounded up to
/// whole pages.
struct segment_layout {
  static constexpr std::size_t page = 4096;

  int ranks = 1;
  std::size_t control_bytes = 0;
  std::size_t arena_bytes = 0;

  [[nodiscard]] constexpr std::size_t control_span() const noexcept {
    return round_up(control_bytes, page);
  }
  /// Distance between the arenas of neighbouring ranks.
  [[nodiscard]] constexpr std::size_t arena_span() const noexcept {
    return round_up(arena_bytes, page);
  }
  [[nodiscard]] constexpr std::size_t total() const noexcept {
    return control_span() + static_cast<std::size_t>(ranks) * arena_span();
  }
};

/// One mapping that holds the arenas of all ranks, zero at first. Pages take memory when they are
/// first touched.
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

  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  [[nodiscard]] const segment_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] int ranks() const noexcept { return layout_.ranks; }
  [[nodiscard]] std::byte* control() const noexcept { return base_; }
  [[nodiscard]] std::byte* arena(int rank) const noexcept;
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
};

}  // namespace untax
