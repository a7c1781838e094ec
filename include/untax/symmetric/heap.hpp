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

/// One allocation, as reports list it.
struct heap_use {
  std::string label;
  std::size_t offset = 0;  ///< in bytes from the start of the arena; the same at every rank
  std::size_t bytes = 0;   ///< the requested size
};

/// The symmetric heap of one rank. It allocates parts of the rank's arena, first fit, and joins
/// neighbours when memory is freed.
///
/// No call waits for other ranks: as long as all ranks allocate and free the same in the same
/// order, they get the same offsets. The bookkeeping lies in private memory; the arena holds only
/// data and guard bands. An allocation is cleared neither when it is made nor when it is freed.
///
/// Memory that peers may still access is *retired* instead of freed: it stays allocated until
/// `reclaim`, which the world calls when all ranks have retired it.
///
/// In device memory the heap grows: `growth_for` says by how much it has to, and the world maps the
/// memory before it calls `extend`.
///
/// Only one thread of the rank may use the heap at a time.
class symmetric_heap {
 public:
  /// Heaps grow by multiples of this, in bytes, unless their limit is closer.
  static constexpr std::size_t growth_step = std::size_t{32} << 20;
  /// The alignment of allocations in bytes.
  static constexpr std::size_t alignment = 512;
  /// The smallest guard band, in bytes. A band extends up to the next allocation.
  static constexpr std::size_t guard_bytes = 64;

  /// Receives the text of each allocation and of each `free` before it is carried out ("allocate
  /// 4096 bytes for \"inbox\""). If it throws, the call has no effect.
  using observer = std::function<void(std::string_view call)>;

  /// The heap of `rank` in `memory`, which has to outlive it.
  symmetric_heap(const segment& memory, int rank, bool guards, observer hears = {});

  /// Allocates `count` elements at every rank, aligned to 512 bytes. `label` names the owner in
  /// reports. Throws `out_of_memory` with a list of all owners and their sizes.
  template <class T>
  [[nodiscard]] symmetric<T> allocate(std::size_t count, std::string_view label) {
    static_assert(alignof(T) <= alignment);
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      refuse_size(count, sizeof(T), label);
    return {reinterpret_cast<T*>(allocate_bytes(count * sizeof(T), label)), count, rank_,
            memory_->layout().arena_span(), guards_ ? memory_->ranks() : 0};
  }
  /// Allocates `bytes` bytes and returns this rank's copy.
  [[nodiscard]] std::byte* allocate_bytes(std::size_t bytes, std::string_view label);

  /// Frees an allocation. No rank may access it any more, so there is usually a barrier before.
  /// Throws `invalid_argument` if there is no such allocation, and `internal` if its guard band was
  /// overwritten.
  template <class T>
  void free(const symmetric<T>& allocation) {
    free_bytes(allocation.local());
  }
  /// As above, by the address of this rank's copy.
  void free_bytes(const void* local);

  /// Retires an allocation of this rank, which peers may still access. It stays allocated until
  /// `reclaim`. It does nothing if there is no such allocation. The observer is not called.
  void retire_bytes(const void* local) noexcept;
  /// Frees all retired memory. No rank may access it any more. It does not check guard bands: a
  /// peer that reclaimed earlier may have been given the memory, and may have written to it here.
  void reclaim();
  /// Throws `internal` with the name of a retired allocation whose guard band was overwritten at
  /// this rank. It does nothing without guards. It has to be called before peers may reclaim.
  void check_retired() const;
  /// Retired bytes, with rounding and guards.
  [[nodiscard]] std::size_t retired() const noexcept { return retired_; }
  /// The labels, sizes and offsets of retired allocations. Ranks that retired the same get the same
  /// text.
  [[nodiscard]] std::string retired_text() const;
  /// Whether an allocation of `bytes` bytes would succeed.
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;

  /// The bytes by which the heap has to grow before an allocation of `bytes` bytes succeeds, as
  /// whole pages. 0 if the heap cannot grow so far, or need not grow.
  [[nodiscard]] std::size_t growth_for(std::size_t bytes) const noexcept;
  /// Makes `bytes` bytes behind the heap part of it. They have to be mapped at all ranks.
  void extend(std::size_t bytes);
  /// The capacity up to which the heap can grow.
  [[nodiscard]] std::size_t limit() const noexcept {
    return memory_->layout().arena_bytes / alignment * alignment;
  }

  /// Throws `internal` with the name of an allocation whose guard band was overwritten at this
  /// rank. It does nothing without guards.
  void check() const;

  /// Bytes from the start of this rank's heap to `p`, which has to be in it.
  [[nodiscard]] std::ptrdiff_t offset_of(const void* p) const noexcept {
    return static_cast<const std::byte*>(p) - memory_->arena(rank_);
  }

  [[nodiscard]] bool guarded() const noexcept { return guards_; }
  /// Bytes that can be allocated, as a multiple of `alignment`.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Allocated and retired bytes, with rounding and guards.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  /// The size of the largest free block in bytes.
  [[nodiscard]] std::size_t largest_free() const noexcept;
  /// The allocations in the order of their offsets, including retired ones.
  [[nodiscard]] std::vector<heap_use> uses() const;
  /// The allocation that contains the byte at `offset`, or that ends just before it.
  [[nodiscard]] std::optional<heap_use> use_at(std::size_t offset) const;
  [[nodiscard]] const segment& memory() const noexcept { return *memory_; }
  /// A text of a few lines: the size in use, and the largest owners.
  [[nodiscard]] std::string report() const;

 private:
  struct block {
    std::size_t span = 0;   // bytes up to the next block
    std::size_t bytes = 0;  // the requested bytes
    bool taken = false;
    bool retired = false;  // and taken
    std::string label = {};
  };
  using blocks = std::map<std::size_t, block>;  // by offset; they cover the arena without gaps

  [[noreturn]] void refuse_size(std::size_t count, std::size_t size, std::string_view label) const;
  [[noreturn]] void refuse(std::size_t bytes, std::string_view label) const;
  void tell(const std::string& call) const;
  [[nodiscard]] blocks::iterator block_at(const void* local) noexcept;
  /// The bytes that an allocation of `bytes` bytes occupies; `bytes` is at most the capacity.
  [[nodiscard]] std::size_t span_of(std::size_t bytes) const noexcept;
  [[nodiscard]] blocks::const_iterator find_room(std::size_t bytes) const noexcept;
  /// Returns the free block that contains the memory now.
  blocks::iterator release(blocks::iterator taken);
  blocks::iterator join_with_neighbours(blocks::iterator freed);
  void write_guard(std::size_t offset, const block& b) const;
  void check_guard(std::size_t offset, const block& b) const;

  const segment* memory_;
  int rank_;
  bool guards_;
  observer hears_;
  std::size_t capacity_;
  blocks blocks_;
  std::size_t used_ = 0;
  std::size_t retired_ = 0;
  heap_watch watched_;
};

}  // namespace untax
