#include <untax/symmetric/heap.hpp>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::byte guard_pattern{0xA5};
constexpr std::size_t labels_in_report = 8;

}  // namespace

symmetric_heap::symmetric_heap(const segment& memory, int rank, bool guards, observer hears)
    : memory_(&memory), rank_(rank), guards_(guards), hears_(std::move(hears)) {
  const std::size_t span = memory.layout().arena_bytes / alignment * alignment;
  if (span > 0) blocks_.emplace(0, block{span, 0, false, {}});
}

std::byte* symmetric_heap::allocate_bytes(std::size_t bytes, std::string_view label) {
  tell(fmt::format("allocate {} bytes for \"{}\"", bytes, label));
  if (bytes > capacity()) refuse(bytes, label);
  const std::size_t span =
      round_up(std::max<std::size_t>(bytes, 1) + (guards_ ? guard_bytes : 0), alignment);
  const auto fit = std::find_if(blocks_.begin(), blocks_.end(), [span](const auto& entry) {
    return !entry.second.taken && entry.second.span >= span;
  });
  if (fit == blocks_.end()) refuse(bytes, label);
  const std::size_t offset = fit->first;
  block& taken = fit->second;
  if (taken.span > span) blocks_.emplace(offset + span, block{taken.span - span, 0, false, {}});
  taken = {span, bytes, true, std::string(label)};
  used_ += span;
  if (guards_) write_guard(offset, taken);
  return memory_->arena(rank_) + offset;
}

void symmetric_heap::free_bytes(const void* local) {
  const auto address = reinterpret_cast<std::uintptr_t>(local);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_->arena(rank_));
  const auto found = address >= begin ? blocks_.find(address - begin) : blocks_.end();
  if (found == blocks_.end() || !found->second.taken) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {} is not an allocation of its symmetric heap, or was freed already",
                    rank_, local));
  }
  tell(fmt::format("free \"{}\" ({} bytes)", found->second.label, found->second.bytes));
  if (guards_) check_guard(found->first, found->second);
  used_ -= found->second.span;
  found->second = {found->second.span, 0, false, {}};
  join_with_neighbours(found);
}

void symmetric_heap::join_with_neighbours(blocks::iterator freed) {
  const auto next = std::next(freed);
  if (next != blocks_.end() && !next->second.taken) {
    freed->second.span += next->second.span;
    blocks_.erase(next);
  }
  if (freed == blocks_.begin()) return;
  const auto previous = std::prev(freed);
  if (previous->second.taken) return;
  previous->second.span += freed->second.span;
  blocks_.erase(freed);
}

void symmetric_heap::check() const {
  if (!guards_) return;
  for (const auto& [offset, b] : blocks_) {
    if (b.taken) check_guard(offset, b);
  }
}

void symmetric_heap::write_guard(std::size_t offset, const block& b) const {
  memory_->fill(rank_, memory_->arena(rank_) + offset + b.bytes, guard_pattern, b.span - b.bytes);
}

void symmetric_heap::check_guard(std::size_t offset, const block& b) const {
  const std::size_t guard = b.span - b.bytes;
  const std::size_t whole =
      memory_->matching(rank_, memory_->arena(rank_) + offset + b.bytes, guard_pattern, guard);
  if (whole == guard) return;
  throw error(errc::internal, fmt::format("rank {}: something wrote past the end of \"{}\" ({} "
                                          "bytes at offset {}), at byte {}; it was "
                                          "a write to it, or one before the start of what follows",
                                          rank_, b.label, b.bytes, offset, b.bytes + whole));
}

std::size_t symmetric_heap::capacity() const noexcept {
  return memory_->layout().arena_bytes / alignment * alignment;
}

std::size_t symmetric_heap::largest_free() const noexcept {
  std::size_t largest = 0;
  for (const auto& entry : blocks_) {
    if (!entry.second.taken) largest = std::max(largest, entry.second.span);
  }
  return largest;
}

std::vector<heap_use> symmetric_heap::uses() const {
  std::vector<heap_use> found;
  for (const auto& [offset, b] : blocks_) {
    if (b.taken) found.push_back({b.label, offset, b.bytes});
  }
  return found;
}

std::string symmetric_heap::report() const {
  struct total {
    std::string_view label;
    std::size_t span = 0;
    int count = 0;
  };
  std::map<std::string_view, total> by_label;
  for (const auto& [offset, b] : blocks_) {
    if (!b.taken) continue;
    total& t = by_label[b.label];
    t = {b.label, t.span + b.span, t.count + 1};
  }
  std::vector<total> totals;
  for (const auto& entry : by_label) totals.push_back(entry.second);
  std::stable_sort(totals.begin(), totals.end(),
                   [](const total& a, const total& b) { return a.span > b.span; });

  std::string text =
      fmt::format("symmetric heap of rank {}: {} of {} taken, largest hole {}", rank_,
                  format_bytes(used_), format_bytes(capacity()), format_bytes(largest_free()));
  for (std::size_t i = 0; i < std::min(totals.size(), labels_in_report); ++i) {
    text += fmt::format("\n  {:>12}  {} ({})", format_bytes(totals[i].span), totals[i].label,
                        totals[i].count);
  }
  if (totals.size() > labels_in_report)
    text += fmt::format("\n  and {} others", totals.size() - labels_in_report);
  return text;
}

void symmetric_heap::refuse_size(std::size_t count, std::size_t size,
                                 std::string_view label) const {
  throw error(errc::out_of_memory,
              fmt::format("rank {}: {} elements of {} bytes for \"{}\" cannot be addressed", rank_,
                          count, size, label));
}

void symmetric_heap::refuse(std::size_t bytes, std::string_view label) const {
  const std::size_t hole = largest_free();
  const std::size_t needed = capacity() - hole + round_up(bytes + guard_bytes, alignment);
  throw error(errc::out_of_memory,
              fmt::format("rank {}: no room for {} for \"{}\"; raise {} to {}M or more\n{}", rank_,
                          format_bytes(bytes), label, variable::heap_bytes.name,
                          ceil_div(needed, std::size_t{1} << 20), report()));
}

void symmetric_heap::tell(const std::string& call) const {
  if (hears_) hears_(call);
}

}  // namespace untax
