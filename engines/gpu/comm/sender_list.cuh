#pragma once

#include <cstdint>

#include "engines/gpu/comm/transfer_list.hpp"

namespace untax::comm {

/// The transfer list of one sender, for kernels. It is constant while the operator exists, so it is
/// loaded through L1, and before the kernels ahead have ended.
class sender_list {
 public:
  sender_list() = default;
  __device__ sender_list(const sender_lists& all, int sender)
      : first_(all.entries + __ldg(all.begins + sender)),
        count_(__ldg(all.begins + sender + 1) - __ldg(all.begins + sender)) {}

  [[nodiscard]] __device__ int count() const { return count_; }
  [[nodiscard]] __device__ transfer at(int i) const {
    const auto* const halves = reinterpret_cast<const int4*>(first_ + i);
    const int4 where = __ldg(halves);
    const int4 what = __ldg(halves + 1);
    transfer t;
    t.row = where.x;
    t.col = where.y;
    t.rows = where.z;
    t.cols = where.w;
    t.acquire = what.x;
    t.publish = what.y;
    t.first_hop = static_cast<std::int16_t>(what.z & 0xffff);
    t.hops = static_cast<std::int16_t>(what.z >> 16);
    t.before = what.w;
    return t;
  }
  /// Calls `send` for each entry, and loads the next entry meanwhile.
  template <class Send>
  __device__ void each(Send&& send) const {
    if (count_ == 0) return;
    transfer next = at(0);
    for (int i = 1; i <= count_; ++i) {
      const transfer now = next;
      if (i < count_) next = at(i);
      send(now);
    }
  }
  /// The number of ranks to which each entry is sent.
  [[nodiscard]] __device__ int hops() const { return count_ > 0 ? at(0).hops : 0; }
  /// The counter that entry `i` waits for.
  [[nodiscard]] __device__ int acquire_of(int i) const { return __ldg(&first_[i].acquire); }

 private:
  const transfer* first_ = nullptr;
  int count_ = 0;
};

}  // namespace untax::comm
