#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/flow/wait.hpp>

namespace untax {

/// The contract of every transfer, in four verbs:
///
///     producer:  reserve(room)  ->  move the bytes  ->  publish(room)
///     consumer:  acquire(room)  ->  use the bytes   ->  retire(room)
///
/// publish -> acquire orders the bytes before their use; retire -> reserve orders their use before
/// the next bytes. Both pairs are release/acquire on the counter itself.
template <memory_policy M, counter_table<M> Table, wait_guard Guard>
class channel {
 public:
  /// `guard` has to outlive the channel. `wait_site` explains `progress`.
  UNTAX_CALLS_ANY_SIDE
  UNTAX_HOST_DEVICE channel(name_ref operator_name, Table table, Guard& guard,
                            std::uint64_t progress = 0)
      : operator_name_(operator_name), table_(table), guard_(&guard), progress_(progress) {}

  /// Producer: waits until every reader has retired the previous use of the room.
  UNTAX_CALLS_ANY_SIDE
  [[nodiscard]] UNTAX_HOST_DEVICE wait_outcome reserve(const room& r) {
    if (r.free < 0 || r.needed_free() == 0) return wait_outcome::ok;
    for (int reader = 0; reader < r.readers; ++reader) {
      const auto outcome =
          wait(table_.at(r.producer, r.free + reader),
               {operator_name_, verb::reserve, r.consumer, r.number, r.needed_free(), progress_});
      if (outcome != wait_outcome::ok) return outcome;
    }
    return wait_outcome::ok;
  }

  /// Producer: signals that the bytes have arrived. Release: everything written before is visible
  /// to the acquirer.
  UNTAX_CALLS_ANY_SIDE
  UNTAX_HOST_DEVICE void publish(const room& r) {
    M::raise_release(table_.at(r.consumer, r.ready), r.use);
  }

  /// Consumer: waits for the bytes. Acquire: they are visible after `ok`.
  UNTAX_CALLS_ANY_SIDE
  [[nodiscard]] UNTAX_HOST_DEVICE wait_outcome acquire(const room& r) {
    return wait(table_.at(r.consumer, r.ready),
                {operator_name_, verb::acquire, r.producer, r.number, r.use, progress_});
  }

  /// Consumer: signals that worker `reader` does not access this use of the room any more. Release.
  UNTAX_CALLS_ANY_SIDE
  UNTAX_HOST_DEVICE void retire(const room& r, int reader) {
    if (r.free >= 0) M::raise_release(table_.at(r.producer, r.free + reader), r.use);
  }

 private:
  UNTAX_CALLS_ANY_SIDE
  UNTAX_HOST_DEVICE wait_outcome wait(typename M::counter& counter, const wait_site& site) {
    return wait_until<M>(counter, site, *guard_);
  }

  name_ref operator_name_;
  Table table_;
  Guard* guard_;
  std::uint64_t progress_;
};

}  // namespace untax
