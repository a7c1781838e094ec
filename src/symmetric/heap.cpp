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
    : memory_(&memory),
      rank_(rank),
      guards_(guards),
      hears_(std::move(hears)),
      capacity_(memory.layout().first_arena() / alignment * alignment),
      watched_(*this, guards) {
  if (capacity_ > 0) blocks_.emplace(0, block{.span = capacity_});
}

std::size_t symmetric_heap::span_of(std::size_t bytes) const noexcept {
  return round_up(std::max<std::size_t>(bytes, 1) + (guards_ ? guard_bytes : 0), alignment);
}

symmetric_heap::blocks::const_iterator symmetric_heap::find_room(std::size_t bytes) const noexcept {
  if (bytes > capacity()) return blocks_.end();
  return std::find_if(blocks_.begin(), blocks_.end(), [span = span_of(bytes)](const auto& entry) {
    return !entry.second.taken && entry.second.span >= span;
  });
}

bool symmetric_heap::fits(std::size_t bytes) const noexcept {
  return find_room(bytes) != blocks_.end();
}

std::size_t symmetric_heap::growth_for(std::size_t bytes) const noexcept {
  if (capacity_ == limit() || bytes > limit() || fits(bytes)) return 0;
  const bool ends_free = !blocks_.empty() && !blocks_.rbegin()->second.taken;
  const std::size_t lacking = span_of(bytes) - (ends_free ? blocks_.rbegin()->second.span : 0);
  const segment_layout& layout = memory_->layout();
  const std::size_t room = layout.arena_span() - segment_layout::stop_bytes - capacity_;
  for (const std::size_t step : {std::max(growth_step, layout.arena_page), layout.arena_page}) {
    const std::size_t more = round_up(lacking, step);
    if (more <= room && lacking <= limit() - capacity_) return more;
  }
  return 0;
}

void symmetric_heap::extend(std::size_t bytes) {
  const heap_watch::change now(watched_);
  const std::size_t more = std::min(bytes, limit() - capacity_);
  if (more == 0) return;
  const auto added = blocks_.emplace(capacity_, block{.span = more}).first;
  capacity_ += more;
  join_with_neighbours(added);
}

std::byte* symmetric_heap::allocate_bytes(std::size_t bytes, std::string_view label) {
  tell(fmt::format("allocate {} bytes for \"{}\"", bytes, label));
  const auto fit = find_room(bytes);
  if (fit == blocks_.end()) refuse(bytes, label);
  const heap_watch::change now(watched_);
  const std::size_t span = span_of(bytes);
  const std::size_t offset = fit->first;
  block& taken = blocks_.at(offset);
  if (taken.span > span) blocks_.emplace(offset + span, block{.span = taken.span - span});
  taken = {.span = span, .bytes = bytes, .taken = true, .label = std::string(label)};
  used_ += span;
  if (guards_) write_guard(offset, taken);
  return memory_->arena(rank_) + offset;
}

symmetric_heap::blocks::iterator symmetric_heap::block_at(const void* local) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(local);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_->arena(rank_));
  return address >= begin ? blocks_.find(address - begin) : blocks_.end();
}

void symmetric_heap::free_bytes(const void* local) {
  const auto block = block_at(local);
  if (block == blocks_.end() || !block->second.taken || block->second.retired) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {} is not an allocation of its symmetric heap, or was freed already",
                    rank_, local));
  }
  tell(fmt::format("free \"{}\" ({} bytes)", block->second.label, block->second.bytes));
  if (guards_) check_guard(block->first, block->second);
  release(block);
}

void symmetric_heap::retire_bytes(const void* local) noexcept {
  const auto block = block_at(local);
  if (block == blocks_.end() || !block->second.taken || block->second.retired) return;
  block->second.retired = true;
  retired_ += block->second.span;
}

void symmetric_heap::reclaim() {
  for (auto at = blocks_.begin(); retired_ > 0 && at != blocks_.end(); ++at) {
    if (!at->second.retired) continue;
    retired_ -= at->second.span;
    at = release(at);
  }
}

void symmetric_heap::check_retired() const {
  if (!guards_ || retired_ == 0) return;
  for (const auto& [offset, b] : blocks_) {
    if (b.retired) check_guard(offset, b);
  }
}

std::string symmetric_heap::retired_text() const {
  std::string text;
  for (const auto& [offset, b] : blocks_) {
    if (!b.retired) continue;
    text += fmt::format("{}\"{}\" ({} bytes at offset {})", text.empty() ? "" : ", ", b.label,
                        b.bytes, offset);
  }
  return text;
}

symmetric_heap::blocks::iterator symmetric_heap::release(blocks::iterator taken) {
  const heap_watch::change now(watched_);
  used_ -= taken->second.span;
  taken->second = {.span = taken->second.span};
  return join_with_neighbours(taken);
}

symmetric_heap::blocks::iterator symmetric_heap::join_with_neighbours(blocks::iterator freed) {
  const auto next = std::next(freed);
  if (next != blocks_.end() && !next->second.taken) {
    freed->second.span += next->second.span;
    blocks_.erase(next);
  }
  if (freed == blocks_.begin()) return freed;
  const auto previous = std::prev(freed);
  if (previous->second.taken) return freed;
  previous->second.span += freed->second.span;
  blocks_.erase(freed);
  return previous;
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

std::size_t symmetric_heap::largest_free() const noexcept {
  std::size_t largest = 0;
  for (const auto& entry : blocks_) {
    if (!entry.second.taken) largest = std::max(largest, entry.second.span);
  }
  return largest;
}

std::vector<heap_use> symmetric_heap::uses() const {
  std::vector<heap_use> result;
  for (const auto& [offset, b] : blocks_) {
    if (b.taken) result.push_back({b.label, offset, b.bytes});
  }
  return result;
}

std::optional<heap_use> symmetric_heap::use_at(std::size_t offset) const {
  const auto next = blocks_.upper_bound(offset);
  if (next == blocks_.begin()) return std::nullopt;
  const auto& [begin, b] = *std::prev(next);
  if (!b.taken || offset > begin + b.bytes) return std::nullopt;
  return heap_use{b.label, begin, b.bytes};
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
  if (retired_ > 0)
    text += fmt::format(", {} free again when all ranks have met", format_bytes(retired_));
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
  // The arenas of all ranks lie side by side, so none is larger than this; the rounding leaves
  // ample room.
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
                           static_cast<std::size_t>(memory_->ranks());
  const std::size_t rounding = std::size_t{1} << 21;
  if (bytes > most - std::min(most, capacity() + rounding)) {
    throw error(errc::out_of_memory,
                fmt::format("rank {}: {} bytes for \"{}\" cannot be addressed; this heap has {}",
                            rank_, bytes, label, format_bytes(capacity())));
  }
  const std::size_t hole = largest_free();
  const std::size_t needed = capacity() - hole + round_up(bytes + guard_bytes, alignment);
  const bool grows = memory_->layout().first_bytes > 0;
  throw error(
      errc::out_of_memory,
      fmt::format("rank {}: no room for {} for \"{}\"{}; raise {} to {}M or more\n{}", rank_,
                  format_bytes(bytes), label,
                  grows ? fmt::format(" in a heap that may grow to {}", format_bytes(limit())) : "",
                  grows ? variable::heap_limit.name : variable::heap_bytes.name,
                  ceil_div(needed, std::size_t{1} << 20), report()));
}

void symmetric_heap::tell(const std::string& call) const {
  if (hears_) hears_(call);
}

}  // namespace untax
