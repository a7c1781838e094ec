#pragma once

#include <untax/flow/channel.hpp>
#include <untax/flow/fault_tap.hpp>

#include "tests/litmus/body.hpp"

namespace untax::litmus {

/// Which verb a mutant leaves out.
enum class without : std::uint8_t { nothing, reserve, acquire, publish, retire };

/// Credit return and epoch reuse. Not from the literature: it is what a room adds to MP. A producer
/// fills one of `sets` rooms in each of `epochs` epochs, a consumer reads it. Before a room is
/// filled again, what was read there last has to be done with: retire -> reserve. Nothing else ever
/// flows back, so nothing else can order that.
///
/// With one set every use waits for the one before (credit return); with two, for the one before
/// that (epoch reuse).
template <memory_policy M, int sets, int epochs, without missing = without::nothing>
struct room_reuse {
  static constexpr int threads = 2;

  /// Counters [rank][set]: `ready` at the consumer (rank 1), `free` at the producer (rank 0).
  struct table {
    typename M::counter* counters;
    [[nodiscard]] typename M::counter& at(int rank, int index) const {
      return counters[rank * sets + index];
    }
  };
  using verbs = channel<M, table, model::no_timeout>;

  typename M::counter counters[2 * sets]{};
  typename M::template cell<int> rooms[sets]{};
  bool wrong = false;

  [[nodiscard]] static room room_of(int epoch) {
    const room_sets sets_of_rooms{sets};
    const auto e = static_cast<std::uint64_t>(epoch);
    const int set = sets_of_rooms.set_of(e);
    return {.producer = 0,
            .consumer = 1,
            .number = set,
            .ready = set,
            .free = set,
            .use = sets_of_rooms.use_of(e)};
  }

  template <class Delay>
  void thread(int index, Delay&& delay) {
    model::no_timeout guard;
    verbs channel("litmus", {counters}, guard);
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      const room r = room_of(epoch);
      delay();
      if (index == 0) {
        if (missing != without::reserve) static_cast<void>(channel.reserve(r));
        rooms[r.number] = epoch;
        if (missing != without::publish) channel.publish(r);
      } else {
        if (missing != without::acquire) static_cast<void>(channel.acquire(r));
        if (rooms[r.number] != epoch) wrong = true;
        if (missing != without::retire) channel.retire(r, 0);
      }
    }
  }
  [[nodiscard]] bool forbidden() const { return wrong; }
  [[nodiscard]] std::string outcome() const { return wrong ? "a wrong use" : "every use"; }
};

template <memory_policy M, without missing = without::nothing>
using credit_return = room_reuse<M, 1, 3, missing>;
template <memory_policy M, without missing = without::nothing>
using epoch_reuse = room_reuse<M, 2, 4, missing>;

}  // namespace untax::litmus
