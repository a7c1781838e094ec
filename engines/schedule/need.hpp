#pragma once

#include <cstdint>

#include <untax/flow/fault_tap.hpp>
#include <untax/tile/step.hpp>

namespace untax::schedule {

/// A counter value that a verb waits for.
struct need {
  int rank = 0;
  int index = 0;
  std::uint64_t value = 0;
};

/// Calls `visit(verb, need)` for everything a step waits for before it acts.
template <class Visit>
void each_need(const step& s, Visit&& visit) {
  if (s.reserve.named() && s.reserve.free >= 0 && s.reserve.needed_free() > 0) {
    for (int reader = 0; reader < s.reserve.readers; ++reader) {
      visit(channel_verb::reserve,
            need{s.reserve.producer, s.reserve.free + reader, s.reserve.needed_free()});
    }
  }
  if (s.acquire.named())
    visit(channel_verb::acquire, need{s.acquire.consumer, s.acquire.ready, s.acquire.use});
}

}  // namespace untax::schedule
