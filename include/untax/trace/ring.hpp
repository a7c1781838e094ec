#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <untax/memory/host_memory.hpp>
#include <untax/trace/event.hpp>

namespace untax {

/// The contents of the word of an event on hosts. Numbers that are larger than their field lose
/// their upper bits. Counter and use still distinguish the signal of a wait from all others in a
/// ring buffer.
struct trace_mark {
  trace_kind kind = trace_kind::run;
  bool end = false;
  int what = 0;   ///< 4 bits
  int owner = 0;  ///< 8 bits: the rank at which a counter lies; at the end of a wait: the peer, all
                  ///< bits for none
  /// 8 bits. A wait: the number of awaited counters, from `counter` on. A run: the number of
  /// stages. A stage: the number of workers.
  int readers = 0;
  std::int64_t counter = 0;  ///< 24 bits; at the end of a wait: the room
  std::int64_t number = 0;   ///< 16 bits; without a counter it continues in those 24

  static constexpr int number_bits = 16;
  static constexpr int counter_bits = 24;
  static constexpr int no_peer = 0xff;

  /// The word of an event.
  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    const auto field = [](auto value, int bits) {
      return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1);
    };
    const std::int64_t middle = counts() ? counter : number >> number_bits;
    return field(kind, 3) | field(end ? 1 : 0, 1) << 3 | field(what, 4) << 4 |
           field(owner, 8) << 8 | field(readers, 8) << 16 | field(middle, counter_bits) << 24 |
           field(number, number_bits) << 48;
  }
  /// The contents of the word of an event.
  [[nodiscard]] static constexpr trace_mark unpacked(std::uint64_t word) noexcept {
    const auto field = [word](int shift, int bits) {
      return static_cast<std::int64_t>(word >> shift & ((std::uint64_t{1} << bits) - 1));
    };
    trace_mark m;
    m.kind = static_cast<trace_kind>(field(0, 3));
    m.end = field(3, 1) != 0;
    m.what = static_cast<int>(field(4, 4));
    m.owner = static_cast<int>(field(8, 8));
    m.readers = static_cast<int>(field(16, 8));
    m.number = field(48, number_bits);
    if (m.counts()) {
      m.counter = field(24, counter_bits);
    } else {
      m.number |= field(24, counter_bits) << number_bits;
    }
    return m;
  }
  /// Whether the mark is of a counter.
  [[nodiscard]] constexpr bool counts() const noexcept {
    return kind == trace_kind::wait || kind == trace_kind::signal;
  }
};

/// A ring buffer with the events of one worker, in memory. It has one writer at a time, and never
/// grows: new events overwrite the oldest ones.
class trace_ring {
 public:
  /// A buffer of `capacity` events, which must not be 0.
  explicit trace_ring(std::size_t capacity)
      : capacity_(capacity), events_(std::make_unique_for_overwrite<trace_event[]>(capacity)) {}

  /// Adds an event with the time of the call.
  void note(const trace_mark& mark) noexcept {
    events_[noted_++ % capacity_] = {host_memory::now(), mark.packed()};
  }
  /// The events in the buffer, the oldest first. Nothing may write meanwhile.
  [[nodiscard]] std::vector<trace_event> events() const;
  /// The number of events that were overwritten.
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return noted_ > capacity_ ? noted_ - capacity_ : 0;
  }

 private:
  std::size_t capacity_;
  std::uint64_t noted_ = 0;
  std::unique_ptr<trace_event[]> events_;
};

/// Records the begin of an activity, and its end when the scope ends. It does nothing without a
/// ring buffer.
class trace_scope {
 public:
  trace_scope(trace_ring* ring, trace_mark mark) noexcept : ring_(ring), mark_(mark) {
    if (ring_ != nullptr) ring_->note(mark_);
  }
  trace_scope(const trace_scope&) = delete;
  trace_scope& operator=(const trace_scope&) = delete;
  ~trace_scope() {
    if (ring_ == nullptr) return;
    mark_.end = true;
    ring_->note(mark_);
  }

 private:
  trace_ring* ring_;
  trace_mark mark_;
};

}  // namespace untax
