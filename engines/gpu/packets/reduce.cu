#include <algorithm>
#include <cstdint>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/packets/units.cuh"
#include "engines/gpu/packets/worker.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/words/partial_words.cuh"
#include "engines/gpu/words/slab_words.cuh"

namespace untax::gpu {
namespace {

template <class Element>
using bits_of = typename word_of_elements<Element>::bits;

/// Ranks whose units a lane polls together, at most.
constexpr int most_peers = 4;

/// One block of a reduction. A warp handles a batch of `how.parts` times 32 consecutive units of
/// every message at a time: it sends batch b, then combines batch b - 1, then, where combined parts
/// are passed on, collects batch b - 2. So data flow in both directions all the time, and a batch
/// has a round in which to arrive. A message has `how.units` units at all ranks, whatever its size:
/// units beyond its end are zero.
///
/// Units are words of another rank's slab (words/partial_words.cuh): data and signal in one.
/// `peers` slabs are polled together, up to `most_parts` units of each by a lane.
template <class Element, int peers, int most_parts>
class word_reduction : packet_block {
  /// Whether all other ranks fit in one group of `peers`.
  static constexpr bool one_group = peers < most_peers;

 public:
  using bits = bits_of<Element>;

  __device__ word_reduction(const packet_layout& how, const run_arguments& run)
      : packet_block(how, run) {}

  __device__ void run() { finish(has_units() ? exchange() : meet_partners()); }

 private:
  using words = partial_words<float, false>;  // 16 bytes, of whatever elements
  using arrived_words = slab_words<words, peers, most_parts>;

  [[nodiscard]] __device__ static int lane() { return device_warp::thread_rank(); }
  [[nodiscard]] __device__ static int warp() {
    return static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
  }
  [[nodiscard]] __device__ std::int64_t in_batch() const { return std::int64_t{32} * how_.parts; }
  [[nodiscard]] __device__ bool has_units() const {
    return how_.units > std::int64_t{blockIdx.x} * (blockDim.x / 32) * in_batch();
  }
  /// The unit of this lane in part `part` of the batch that begins at unit `begin`.
  [[nodiscard]] __device__ static std::int64_t unit_of(std::int64_t begin, int part) {
    return begin + part * arrived_words::lanes + lane();
  }
  /// A bit for each part in which this lane has a unit.
  [[nodiscard]] __device__ unsigned wanted_of(std::int64_t begin) const {
    unsigned wanted = 0;
#pragma unroll
    for (int part = 0; part < most_parts; ++part) {
      if (part < how_.parts && unit_of(begin, part) < how_.units) wanted |= 1U << part;
    }
    return wanted;
  }

  /// Returns false if a wait failed.
  [[nodiscard]] __device__ bool exchange() {
    const action_note noted(run_, action::reduce);
    const std::int64_t step = in_batch() * gridDim.x * (blockDim.x / 32);
    const std::int64_t first = warp() * in_batch();
    const std::int64_t behind = how_.passes_on ? 2 : 1;
    for (std::int64_t begin = first; begin - behind * step < how_.units; begin += step) {
      if (begin < how_.units) send(begin);
      const std::int64_t to_combine = begin - step;
      if (to_combine >= 0 && to_combine < how_.units && !combine(to_combine)) return false;
      const std::int64_t to_collect = begin - 2 * step;
      if (how_.passes_on && to_collect >= 0 && !collect(to_collect)) return false;
    }
    return true;
  }

  /// A block that has no unit in this run exchanges an empty one. By that, its partners learn that
  /// it has ended the last epoch, as they must before they overwrite the units of two epochs ago.
  [[nodiscard]] __device__ bool meet_partners() {
    if (threadIdx.x >= 32) return true;
    const std::int64_t unit = how_.capacity - gridDim.x + blockIdx.x;
    for (int hop = 1; lane() == 0 && hop < ranks(); ++hop)
      store_sum_words(slot(0, at_hop(hop), rank(), unit), as_words(make_uint4(0, 0, 0, 0)));
    return take(0, unit, lane() == 0 ? 1 : 0, [](const arrived_words&) {});
  }

  __device__ void send(std::int64_t begin) const {
    const unsigned wanted = wanted_of(begin);
    for (int hop = 1; hop < ranks(); ++hop) {
      const int peer = at_hop(hop);
      const range& part = how_.messages.sent[peer];
      uint4 data[most_parts];
#pragma unroll
      for (int i = 0; i < most_parts; ++i) {
        if ((wanted >> i & 1U) != 0) data[i] = load_unit(in(part), unit_of(begin, i), part.size);
      }
#pragma unroll
      for (int i = 0; i < most_parts; ++i) {
        if ((wanted >> i & 1U) != 0)
          store_sum_words(slot(0, peer, rank(), unit_of(begin, i)), as_words(data[i]));
      }
    }
  }

  /// Combines the contributions of all ranks to a batch of the own part, in rank order.
  [[nodiscard]] __device__ bool combine(std::int64_t begin) {
    const range& own = how_.messages.sent[rank()];
    const unsigned wanted = wanted_of(begin);
    uint4 mine[most_parts];
#pragma unroll
    for (int i = 0; i < most_parts; ++i) {
      // Converted like the units that are sent, so that all ranks combine the same bits, also of
      // NaNs.
      if ((wanted >> i & 1U) != 0)
        mine[i] = from_words(as_words(load_unit(in(own), unit_of(begin, i), own.size)));
    }
    combination<Element, 4> sums[one_group ? 1 : most_parts];
    return take(0, begin, wanted, [&](const arrived_words& units) {
#pragma unroll
      for (int i = 0; i < most_parts; ++i) {
        if ((wanted >> i & 1U) == 0) continue;
        combination<Element, 4>& sum = sums[one_group ? 0 : i];
        if (add(units, i, mine[i], sum)) pass(sum, unit_of(begin, i));
      }
    });
  }
  /// Adds part `i` of a group of ranks, and this rank's part in its place of the order. Returns
  /// whether the sum is complete.
  [[nodiscard]] __device__ bool add(const arrived_words& units, int i, const uint4& mine,
                                    combination<Element, 4>& sum) const {
    const auto add_one = [&](const uint4& held, int source) {
      const std::uint32_t data[4] = {held.x, held.y, held.z, held.w};
      if (source == 0) {
        sum.start(data);
      } else {
        sum.add(how_.how, data);
      }
    };
    const int others = ranks() - 1;
#pragma unroll
    for (int k = 0; k < peers; ++k) {
      if (k >= units.at.count) break;
      if (units.at.begin + k == rank()) add_one(mine, rank());
      add_one(from_words(units.found[k][i]), units.at.rank_of(k));
    }
    const bool complete = units.at.begin + units.at.count == others;
    if (complete && rank() == others) add_one(mine, rank());
    return complete;
  }
  /// Stores a combined unit of the own part, here and at the ranks to which it is passed on.
  __device__ void pass(const combination<Element, 4>& sum, std::int64_t unit) const {
    std::uint32_t data[4];
    sum.finish(data);
    const uint4 sent = as_words(make_uint4(data[0], data[1], data[2], data[3]));
    for (int hop = 1; how_.passes_on && hop < ranks(); ++hop)
      store_sum_words(slot(1, at_hop(hop), rank(), unit), sent);
    const range& to = how_.messages.got[rank()];
    store_unit(from_words(sent), out(to), unit, to.size);
  }

  /// Takes a batch of the parts that other ranks have combined.
  [[nodiscard]] __device__ bool collect(std::int64_t begin) {
    const unsigned wanted = wanted_of(begin);
    return take(1, begin, wanted, [&](const arrived_words& units) {
#pragma unroll
      for (int k = 0; k < peers; ++k) {
        if (k >= units.at.count) break;
        const range& to = how_.messages.got[units.at.rank_of(k)];
#pragma unroll
        for (int i = 0; i < most_parts; ++i) {
          if ((wanted >> i & 1U) != 0)
            store_unit(from_words(units.found[k][i]), out(to), unit_of(begin, i), to.size);
        }
      }
    });
  }

  /// Calls `use(units)` for each group of other ranks, in rank order, when their units of a batch
  /// have arrived. All lanes of the warp must call this. Returns false if a wait failed.
  template <class Use>
  [[nodiscard]] __device__ bool take(int phase, std::int64_t begin, unsigned wanted,
                                     const Use& use) {
    slab_place<words> from;
    from.base = slot(phase, rank(), 0, unit_of(begin, 0));
    from.stride = how_.slabs > 1 ? how_.capacity : 0;
    from.skipped = rank();
    from.wanted = wanted;
    from.epoch = epoch();
    from.room = static_cast<int>(begin / 32);
    const int others = ranks() - 1;
    // A world of one rank has one group, which is empty.
    do {
      from.count = min(others - from.begin, peers);
      arrived_words units(from);
      units.fetch();
      if (!units.compact_await(run_, warp())) return false;
      if (!left_out(mutant::sums_reset)) units.reset_words();
      use(units);
      from.begin += peers;
    } while (!one_group && from.begin < others);
    return true;
  }

  [[nodiscard]] __device__ const bits* in(const range& part) const noexcept {
    return reinterpret_cast<const bits*>(run_.in) + part.begin;
  }
  [[nodiscard]] __device__ bits* out(const range& part) const noexcept {
    return reinterpret_cast<bits*>(run_.out) + part.begin;
  }
  [[nodiscard]] __device__ uint4* slot(int phase, int at, int source,
                                       std::int64_t unit) const noexcept {
    return reinterpret_cast<uint4*>(run_.inbox.at(at)) + how_.slot(phase, epoch(), source, unit);
  }
};

template <class Element, int peers, int most_parts>
__global__ void __launch_bounds__(reduction_threads)
    reduce(const __grid_constant__ packet_layout how, const __grid_constant__ run_arguments run) {
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  if (run.launch < 0) return;
  word_reduction<Element, peers, most_parts>(how, run).run();
}

/// Sets `kernel`, and the number of units of a lane in a batch: with few peers a lane has more
/// units of each.
template <class Element>
const void* kernel_for(int ranks, int& most_parts) {
  if (ranks <= 2) {
    most_parts = 4;
    return reinterpret_cast<const void*>(&reduce<Element, 1, 4>);
  }
  if (ranks <= 4) {
    most_parts = 2;
    return reinterpret_cast<const void*>(&reduce<Element, 3, 2>);
  }
  most_parts = 1;
  return reinterpret_cast<const void*>(&reduce<Element, most_peers, 1>);
}

template <class Element>
collective_kernel code_with(packet_layout how, int blocks) {
  using bits = bits_of<Element>;
  std::int64_t longest = 0;
  for (int peer = 0; peer < how.messages.ranks; ++peer)
    longest = std::max(longest, how.messages.sent[peer].size);
  how.units = units_for<bits>(longest);
  // The last units are those of blocks that have nothing to send in a run.
  how.capacity = units_for<bits>(how.messages.largest) + blocks;
  how.slabs = how.messages.ranks > 2 ? how.messages.ranks : 1;
  int most_parts = 1;
  const void* kernel = kernel_for<Element>(how.messages.ranks, most_parts);
  // A unit belongs to the same block in runs of few elements and of many: see packet_layout.
  const std::int64_t lanes = std::int64_t{reduction_threads} * blocks;
  how.parts = static_cast<int>(std::clamp<std::int64_t>(how.capacity / lanes, 1, most_parts));
  collective_kernel code = packet_code<bits>(kernel, how, blocks);
  code.threads = reduction_threads;
  code.early = true;
  code.content = room_content::words;
  code.counters = 0;
  code.text = "words";
  return code;
}

}  // namespace

collective_kernel packet_reduction(const message_table& messages, dtype type, reduction how,
                                   bool passes_on, int blocks) {
  const packet_layout layout{.messages = messages, .how = how, .passes_on = passes_on};
  switch (type) {
    case dtype::f32:
      return code_with<float>(layout, blocks);
    case dtype::f16:
      return code_with<f16>(layout, blocks);
    case dtype::bf16:
      return code_with<bf16>(layout, blocks);
  }
  return {};
}

}  // namespace untax::gpu
