#include "match.hpp"

namespace untax {

signal_index::key signal_index::key_of(std::uint64_t op, int owner, int counter, std::int64_t use) {
  return {op, static_cast<std::uint64_t>(owner) << 48U |
                  static_cast<std::uint64_t>(counter) << 16U |
                  (static_cast<std::uint64_t>(use) & 0xffffU)};
}

signal_index::signal_index(const trace_record& record) : record_(&record) {
  for (std::size_t o = 0; o < record.operators.size(); ++o) {
    const traced_operator& op = record.operators[o];
    for (std::size_t w = 0; w < op.workers.size(); ++w) {
      for (std::size_t i = 0; i < op.workers[w].size(); ++i) {
        const trace_span& span = op.workers[w][i];
        if (span.kind != trace_kind::signal) continue;
        // If a signal is repeated, the first one counts.
        places_.emplace(key_of(op.id, span.owner, span.counter, span.number), span_place{o, w, i});
      }
    }
  }
}

std::optional<span_place> signal_index::signal_of(const traced_operator& op,
                                                  const trace_span& wait) const {
  if (wait.counter < 0) return std::nullopt;
  std::optional<span_place> last;
  for (int reader = 0; reader < wait.count; ++reader) {
    const auto match = places_.find(key_of(op.id, wait.owner, wait.counter + reader, wait.number));
    if (match == places_.end()) return std::nullopt;
    if (!last || at(match->second).begin > at(*last).begin) last = match->second;
  }
  return last;
}

}  // namespace untax
