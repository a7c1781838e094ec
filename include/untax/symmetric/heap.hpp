#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/symmetric/heap_watch.hpp>
#include <untax/symmetric/segment.hpp>
#include <untax/symmetric/symmetric.hpp>

namespace untax {

/// One allocation, as reports show it.
struct heap_use {
  std::string label;
  std::size_t offset = 0;  ///< in the arena; the same at every rank
  std::size_t bytes = 0;   ///< as asked for
};

/// The symmetric heap of one rank: hands out parts of the rank's arena, first fit, neighbours
/// joined when freed.
///
/// There is no barrier anywhere: as long as all ranks allocate and free the same in the same order,
/// all of them get the same offsets. The bookkeeping lies in private memory; the arena holds data
/// only (and guard bands). An allocation is neither cleared when it is made nor when it is freed.
///
/// Memory that peers may still touch is *retired* instead of freed: it stays taken until `reclaim`,
/// which the world calls when all ranks have retired it.
///
/// One thread of the rank at a time.
class symmetric_heap {
 public:
  static constexpr std::size_t alignment = 512;
  /// Guard bands are this wide at least, and fill the rest up to the next allocation.
  static constexpr std::size_t guard_bytes = 64;

  /// Called with each call before it is carried out ("allocate 4096 bytes for \"inbox\""). It may
  /// throw.
  using observer = std::function<void(std::string_view call)>;

  /// The heap of `rank` in `memory`, which has to outlive it.
  symmetric_heap(const segment& memory, int rank, bool guards, observer hears = {});

  /// `count` elements at every rank, aligned to 512 bytes. `label` says in reports whose they are.
  /// Throws `out_of_memory` with a list of who has how much.
  template <class T>
  [[nodiscard]] symmetric<T> allocate(std::size_t count, std::string_view label) {
    static_assert(alignof(T) <= alignment);
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      refuse_size(count, sizeof(T), label);
    return {reinterpret_cast<T*>(allocate_bytes(count * sizeof(T), label)), count, rank_,
            memory_->layout().arena_span(), guards_ ? memory_->ranks() : 0};
  }
  /// This rank's copy of a new allocation.
  [[nodiscard]] std::byte* allocate_bytes(std::size_t bytes, std::string_view label);

  /// Ends an allocation. No rank may touch it any more, so there is usually a barrier before.
  /// Throws `invalid_argument` if it is none (or no more), `internal` if its guard band was
  /// overwritten.
  template <class T>
  void free(const symmetric<T>& allocation) {
    free_bytes(allocation.local());
  }
  void free_bytes(const void* local);

  /// Ends an allocation of this rank, which peers may still touch; nothing if it is none. It stays
  /// taken until `reclaim`. The observer is not called.
  void retire_bytes(const void* local) noexcept;
  /// Frees what was retired. No rank may touch it any more. It looks at no guard band: a peer that
  /// was quicker may have been given the memory, and may have written to it here.
  void reclaim();
  /// Throws `internal` that names what was retired and has its guard band overwritten at this rank;
  /// nothing without guards. To be called before peers may reclaim.
  void check_retired() const;
  /// Bytes that are retired, with rounding and guards.
  [[nodiscard]] std::size_t retired() const noexcept { return retired_; }
  /// What is retired: labels, sizes and offsets, the same text at ranks that retired the same.
  [[nodiscard]] std::string retired_text() const;
  /// Whether an allocation of so many bytes would find room.
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;

  /// Throws `internal` that names the allocation if a guard band was overwritten at this rank;
  /// nothing without guards.
  void check() const;

  /// Bytes from the beginning of this rank's heap to `p`, which lies in it.
  [[nodiscard]] std::ptrdiff_t offset_of(const void* p) const noexcept {
    return static_cast<const std::byte*>(p) - memory_->arena(rank_);
  }

  [[nodiscard]] bool guarded() const noexcept { return guards_; }
  [[nodiscard]] std::size_t capacity() const noexcept;
  /// Bytes that are taken or retired, with rounding and guards.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t largest_free() const noexcept;
  /// The allocations in the order of their offsets, retired ones too.
  [[nodiscard]] std::vector<heap_use> uses() const;
  /// The allocation that has the byte at `offset`, or the one that it is the first byte behind.
  [[nodiscard]] std::optional<heap_use> use_at(std::size_t offset) const;
  [[nodiscard]] const segment& memory() const noexcept { return *memory_; }
  /// A few lines for people: how much is taken by whom, largest first.
  [[nodiscard]] std::string report() const;

 private:
  struct block {
    std::size_t span = 0;   // bytes up to the next block
    std::size_t bytes = 0;  // as asked for
    bool taken = false;
    bool retired = false;  // and taken
    std::string label = {};
  };
  using blocks = std::map<std::size_t, block>;  // by offset; they cover the arena without gaps

  [[noreturn]] void refuse_size(std::size_t count, std::size_t size, std::string_view label) const;
  [[noreturn]] void refuse(std::size_t bytes, std::string_view label) const;
  void tell(const std::string& call) const;
  [[nodiscard]] blocks::iterator block_at(const void* local) noexcept;
  /// What an allocation of so many bytes takes; they are no more than the capacity.
  [[nodiscard]] std::size_t span_of(std::size_t bytes) const noexcept;
  [[nodiscard]] blocks::const_iterator find_room(std::size_t bytes) const noexcept;
  /// The free block that it is a part of now.
  blocks::iterator release(blocks::iterator taken);
  blocks::iterator join_with_neighbours(blocks::iterator freed);
  void write_guard(std::size_t offset, const block& b) const;
  void check_guard(std::size_t offset, const block& b) const;

  const segment* memory_;
  int rank_;
  bool guards_;
  observer hears_;
  blocks blocks_;
  std::size_t used_ = 0;
  std::size_t retired_ = 0;
  heap_watch watched_;
};

}  // namespace untax
