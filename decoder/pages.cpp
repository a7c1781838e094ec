#include <untax/decoder/pages.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/types.hpp>

namespace untax {

page_allocator::page_allocator(const limits& most) : most_(most) {
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t value : {most.pages, most.page_size, most.sequences, most.tokens}) {
    if (value >= 1 && value <= any) continue;
    throw error(errc::invalid_argument,
                fmt::format("a cache of {} pages of {} tokens for {} sequences of {} tokens: each "
                            "number has to be between 1 and {}",
                            most.pages, most.page_size, most.sequences, most.tokens, any));
  }
  sequences_.resize(static_cast<std::size_t>(most.sequences));
  users_.assign(static_cast<std::size_t>(most.pages), 0);
  for (auto page = static_cast<std::int32_t>(most.pages); page > 0; --page) {
    free_.push_back(page - 1);
  }
}

bool page_allocator::exists(int sequence) const noexcept {
  return sequence >= 0 && sequence < most_.sequences &&
         sequences_[static_cast<std::size_t>(sequence)].exists;
}

const page_allocator::sequence_state& page_allocator::state(int sequence) const {
  if (!exists(sequence)) {
    throw error(errc::invalid_argument, fmt::format("there is no sequence {}", sequence));
  }
  return sequences_[static_cast<std::size_t>(sequence)];
}

std::int64_t page_allocator::length(int sequence) const { return state(sequence).length; }

std::span<const std::int32_t> page_allocator::pages(int sequence) const {
  return state(sequence).pages;
}

int page_allocator::free_sequence() const {
  const auto unused = std::ranges::find(sequences_, false, &sequence_state::exists);
  if (unused == sequences_.end()) {
    throw error(errc::out_of_memory, fmt::format("the cache has all of its {} sequences; remove "
                                                 "one",
                                                 most_.sequences));
  }
  return static_cast<int>(unused - sequences_.begin());
}

int page_allocator::add() {
  const int sequence = free_sequence();
  sequences_[static_cast<std::size_t>(sequence)] = {.exists = true, .length = 0, .pages = {}};
  return sequence;
}

std::int64_t page_allocator::missing_pages(const sequence_state& s, std::int64_t tokens) const {
  return ceil_div(s.length + tokens, most_.page_size) - static_cast<std::int64_t>(s.pages.size());
}

std::int32_t page_allocator::take() {
  const std::int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void page_allocator::extend(std::span<const growth> more) {
  std::int64_t missing = 0;
  std::vector<bool> named(sequences_.size());
  for (const growth& g : more) {
    const sequence_state& s = state(g.sequence);
    if (g.tokens < 0 || named[static_cast<std::size_t>(g.sequence)]) {
      throw error(errc::invalid_argument,
                  fmt::format("sequence {} grows by {} tokens: it has to be named once, and its "
                              "tokens must not be negative",
                              g.sequence, g.tokens));
    }
    named[static_cast<std::size_t>(g.sequence)] = true;
    if (g.tokens > most_.tokens - s.length) {
      throw error(
          errc::out_of_memory,
          fmt::format("sequence {} has {} tokens and cannot have {} more: sequences have up "
                      "to {}",
                      g.sequence, s.length, g.tokens, most_.tokens));
    }
    missing += missing_pages(s, g.tokens);
  }
  if (missing > free_pages()) {
    throw error(
        errc::out_of_memory,
        fmt::format("the cache is full: {} more pages of {} tokens are needed, and {} of {} "
                    "are free; remove a sequence",
                    missing, most_.page_size, free_pages(), most_.pages));
  }
  for (const growth& g : more) {
    sequence_state& s = sequences_[static_cast<std::size_t>(g.sequence)];
    for (std::int64_t i = missing_pages(s, g.tokens); i > 0; --i) s.pages.push_back(take());
    s.length += g.tokens;
  }
}

page_allocator::forked page_allocator::fork(int sequence) {
  const sequence_state& source = state(sequence);
  forked result{.sequence = free_sequence(), .page = std::nullopt};
  const bool partial = source.length % most_.page_size != 0;
  if (partial && free_.empty()) {
    throw error(
        errc::out_of_memory,
        "the cache is full: the last page of a forked sequence is copied, and none is free");
  }
  sequence_state& copied = sequences_[static_cast<std::size_t>(result.sequence)];
  copied = source;
  if (partial) {
    result.page = copy{.from = copied.pages.back(), .to = take()};
    copied.pages.back() = result.page->to;
  }
  for (std::size_t i = 0; i + (partial ? 1 : 0) < copied.pages.size(); ++i) {
    ++users_[static_cast<std::size_t>(copied.pages[i])];
  }
  return result;
}

void page_allocator::remove(int sequence) {
  const auto pages = state(sequence).pages;
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
    if (--users_[static_cast<std::size_t>(*page)] == 0) free_.push_back(*page);
  }
  sequences_[static_cast<std::size_t>(sequence)] = {};
}

}  // namespace untax
