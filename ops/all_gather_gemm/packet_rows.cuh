#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/gemm/config.hpp"
#include "engines/sm90/ptx/packet_load.cuh"
#include "engines/sm90/transfer/held_waits.cuh"
#include "engines/sm90/transfer/seldom_watch.cuh"
#include "ops/all_gather_gemm/packets.hpp"

namespace untax {

/// What a thread takes of `slices` slices: of each the packets of one place in so many bands of 8
/// rows. They are asked for all at once before the first one is looked at.
template <int slices, int bands>
struct packets_of_slices {
  static constexpr int every = sm90::math_groups;  ///< of so many slices one

  const packet* first = nullptr;  ///< of slice 0
  int step = 0;                   ///< packets from a slice to the next one
  unsigned wanted = 0;            ///< a bit for each: slice by slice, in a slice band by band
  packet found[slices][bands];

  // Of slice 0 and band 0, for the wait record.
  const packet_panel* panel = nullptr;
  int row = 0;
  int column = 0;

  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  int oldest = 0;  ///< which of them is missing

  __device__ void ask() {
#pragma unroll
    for (int i = 0; i < slices; ++i) {
#pragma unroll
      for (int band = 0; band < bands; ++band)
        found[i][band] =
            sm90::load_packet_if((wanted >> (i * bands + band) & 1U) != 0,
                                 first + i * step + band * (8 * packet_panel::across), nothing());
    }
  }
  [[nodiscard]] __device__ bool have_come() {
    bool came = true;
#pragma unroll
    for (int i = slices - 1; i >= 0; --i) {
#pragma unroll
      for (int band = bands - 1; band >= 0; --band) {
        if (found[i][band].epoch >= expected) continue;
        came = false;
        seen = found[i][band].epoch;
        oldest = i * bands + band;
      }
    }
    return came;
  }
  [[nodiscard]] __device__ std::uint64_t look() {
    ask();
    if (have_come()) return 1;
    const int at_row = row + oldest % bands * 8;
    const int at_column = column + oldest / bands * (every * sm90::slice_depth);
    peer = panel->source_of(at_row);
    room = panel->at(at_row, at_column);
    return 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}

 private:
  [[nodiscard]] __device__ static packet nothing() { return {0, ~std::uint64_t{0}}; }
};

/// A as packets, brought to a math warpgroup by its threads: see engines/sm90/gemm/protocol.cuh. A
/// thread has the same place in every slice: four columns of rows r and r + 8. Nothing but the
/// epoch in a packet says that it has come.
class packet_rows {
  static constexpr int bands = 2;  // of 8 rows, after which the swizzle repeats
  static constexpr int row_bytes = sm90::slice_depth * 2;

 public:
  static constexpr int stages = 2;
  using asked = packets_of_slices<stages, bands>;

  /// `slot` names the wait record of the first warp of a warpgroup; others have the next ones.
  __device__ packet_rows(const packet_gather& gather, std::uint64_t epoch, int group, int slot)
      : g_(gather),
        epoch_(epoch),
        slot_(slot + thread() / 32),
        tells_(group == 0),
        row_(thread() / packet_panel::across),
        column_(thread() % packet_panel::across * packet_panel::elements),
        swizzled_(row_ * row_bytes + (column_ / 8 ^ row_ % 8) * 16 + column_ % 8 * 2),
        inbox_(reinterpret_cast<const packet*>(g_.moved.run.inbox.local()) +
               g_.how.sets().set_of(epoch) * g_.panel.in_set + g_.panel.at(row_, column_)) {}

  [[nodiscard]] __device__ asked ask(int slice, int count) const {
    asked rows;
    rows.first = inbox_ + slice * g_.panel.rows * packet_panel::across;
    rows.step = asked::every * g_.panel.rows * packet_panel::across;
    rows.panel = &g_.panel;
    rows.row = row_;
    rows.column = slice * sm90::slice_depth + column_;
    rows.expected = epoch_;
#pragma unroll
    for (int i = 0; i < stages; ++i) {
      // The last slices may reach beyond k.
      const int column = rows.column + i * asked::every * sm90::slice_depth;
#pragma unroll
      for (int band = 0; band < bands; ++band) {
        if (i < count && column < g_.panel.columns && has(band))
          rows.wanted |= 1U << (i * bands + band);
      }
    }
    rows.ask();
    return rows;
  }
  template <class Place>
  __device__ void settle(asked& rows, int count, const Place& place) {
    if (going_ && __any_sync(0xffffffffU, rows.have_come() ? 0 : 1) != 0) going_ = await(rows);
#pragma unroll
    for (int i = 0; i < stages; ++i) {
#pragma unroll
      for (int band = 0; band < bands; ++band) {
        if (i < count && has(band))
          *reinterpret_cast<std::uint64_t*>(place(i) + swizzled_ + band * 8 * row_bytes) =
              rows.found[i][band].data;
      }
    }
  }

 private:
  [[nodiscard]] __device__ static int thread() {
    return static_cast<int>(threadIdx.x) % sm90::group_threads;
  }
  [[nodiscard]] __device__ bool has(int band) const { return row_ + 8 * band < g_.panel.rows; }

  /// False after a wait that ended badly. Then the math goes on with whatever is there: see
  /// `gather_traffic::at_block::await`.
  [[nodiscard]] __device__ bool await(asked& mine) const {
    const sm90::run_arguments& run = g_.moved.run;
    const device_watch of_warp(run.world, slot_);
    // Both warpgroups wait for the same ranks.
    sm90::seldom_watch watch(tells_ ? of_warp : of_warp.silent());
    return sm90::wait_for_parts(mine, watch, run.operator_name()) == wait_outcome::ok;
  }

  const packet_gather& g_;
  std::uint64_t epoch_;
  int slot_;  // of the wait record
  bool tells_;
  int row_;       // of band 0
  int column_;    // in a slice
  int swizzled_;  // where they lie in it, in bytes
  const packet* inbox_;
  bool going_ = true;
};

}  // namespace untax
