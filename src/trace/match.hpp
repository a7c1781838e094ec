#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <untax/trace/record.hpp>

namespace untax {

/// The place of a span in a record.
struct span_place {
  std::size_t op = 0;      ///< in `trace_record::operators`
  std::size_t worker = 0;  ///< of the operator
  std::size_t index = 0;   ///< among the worker's spans

  bool operator==(const span_place&) const = default;
};

/// The signals of a record, by the counters and uses that they raise.
class signal_index {
 public:
  explicit signal_index(const trace_record& record);

  /// The signal that ended the wait: the last signal among those of its counters. Nothing if one of
  /// these signals is not in the record.
  [[nodiscard]] std::optional<span_place> signal_of(const traced_operator& op,
                                                    const trace_span& wait) const;
  [[nodiscard]] const traced_operator* op_of(const span_place& place) const {
    return &record_->operators[place.op];
  }
  [[nodiscard]] const trace_span& at(const span_place& place) const {
    return record_->operators[place.op].workers[place.worker][place.index];
  }

 private:
  struct key {
    std::uint64_t op = 0;
    std::uint64_t target = 0;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& k) const noexcept {
      return static_cast<std::size_t>((k.op ^ k.target) * 0x9e3779b97f4a7c15U);
    }
  };
  [[nodiscard]] static key key_of(std::uint64_t op, int owner, int counter, std::int64_t use);

  const trace_record* record_;
  std::unordered_map<key, span_place, hash> places_;
};

/// The parts of a wait, in nanoseconds: until the peer signalled, and after that.
struct wait_parts {
  std::uint64_t late = 0;
  std::uint64_t in_flight = 0;
  bool matched = false;
};

[[nodiscard]] inline wait_parts parts_of(const signal_index& signals, const traced_operator& op,
                                         const trace_span& wait) {
  const auto result = signals.signal_of(op, wait);
  if (!result) return {wait.end - wait.begin, 0, false};
  const std::uint64_t signalled = std::clamp(signals.at(*result).begin, wait.begin, wait.end);
  return {signalled - wait.begin, wait.end - signalled, true};
}

}  // namespace untax
