#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// A protocol that splits products over the whole k into one for each rank's columns, in the order
/// of patterns that overlap: the rank's own first. So all patterns add in the same order.
template <protocol P>
class own_columns_first : public P {
 public:
  /// `k`: the columns of each rank; empty if products are not split.
  own_columns_first(const P& how, const sharding& k) : P(how), k_(k) {}

  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    P::program(kernel_index, worker, epoch, [&](const step& s) {
      if (s.what != action::multiply || s.depth != k_.extent) return emit(s);
      std::int64_t done = 0;
      for (int hop = 0; hop < k_.parts; ++hop) {
        const range cols = k_.of(source_at_hop(P::rank(), hop, k_.parts));
        if (cols.empty()) continue;
        step part = s;
        part.first = done == 0;
        done += cols.size;
        part.last = done == s.depth;
        part.depth = cols.size;
        part.from.col = part.weights.col = cols.begin;
        emit(part);
      }
    });
  }

 private:
  sharding k_;
};

}  // namespace untax
