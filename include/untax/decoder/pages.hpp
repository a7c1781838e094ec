#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace untax {

/// The pages of a cache of keys and values, and which of them each sequence has. It knows no
/// memory: all ranks that make the same calls get the same pages. Errors are thrown before anything
/// changes.
class page_allocator {
 public:
  struct limits {
    std::int64_t pages = 0;      ///< of the cache
    std::int64_t page_size = 0;  ///< tokens of a page
    std::int64_t sequences = 0;  ///< at a time
    std::int64_t tokens = 0;     ///< of a sequence
  };
  struct growth {
    int sequence = 0;
    std::int64_t tokens = 0;
  };
  /// A page whose content the caller copies to another one.
  struct copy {
    std::int32_t from = 0;
    std::int32_t to = 0;
  };
  struct forked {
    int sequence = 0;
    std::optional<copy> page;
  };

  /// Throws `invalid_argument` for limits that are not positive.
  explicit page_allocator(const limits& most);

  /// Begins a sequence without tokens and returns its number, the smallest that is free. Throws
  /// `out_of_memory` if there are as many as there can be.
  int add();
  /// Gives sequences room for more tokens, all or none of them. No sequence may be there twice.
  /// Throws `out_of_memory` if the pages do not suffice or a sequence gets too long.
  void extend(std::span<const growth> more);
  /// Begins a sequence with the tokens of `sequence`. Full pages are shared; the last one, if it is
  /// not full, has to be copied. Throws `out_of_memory`.
  forked fork(int sequence);
  /// Ends a sequence. Its pages are free unless another sequence has them.
  void remove(int sequence);

  [[nodiscard]] bool exists(int sequence) const noexcept;
  [[nodiscard]] std::int64_t length(int sequence) const;
  /// The pages of a sequence, in the order of its tokens.
  [[nodiscard]] std::span<const std::int32_t> pages(int sequence) const;
  [[nodiscard]] std::int64_t free_pages() const noexcept {
    return static_cast<std::int64_t>(free_.size());
  }
  [[nodiscard]] const limits& most() const noexcept { return most_; }

 private:
  struct sequence_state {
    bool exists = false;
    std::int64_t length = 0;
    std::vector<std::int32_t> pages;
  };
  [[nodiscard]] const sequence_state& state(int sequence) const;
  [[nodiscard]] std::int64_t missing_pages(const sequence_state& s, std::int64_t tokens) const;
  [[nodiscard]] int free_sequence() const;
  std::int32_t take();

  limits most_;
  std::vector<sequence_state> sequences_;
  std::vector<std::int32_t> users_;  ///< sequences that have a page
  std::vector<std::int32_t> free_;   ///< the last is taken next
};

}  // namespace untax
