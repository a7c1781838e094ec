#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/attention/log_sum_exp.cuh"
#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/merge/merge_rows.hpp"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/sm90/ptx/floats.cuh"
#include "engines/gpu/sm90/ptx/packet_load.cuh"
#include "engines/gpu/trace/block_run.cuh"
#include "engines/gpu/words/partial_words.cuh"
#include "engines/gpu/words/slab_words.cuh"

namespace untax::gpu {
namespace {

/// The chunk and the statistic of its row that a lane awaits from each peer. All loads are issued
/// before the first result is checked. Checks run from the last peer to the first.
template <int others>
struct parts_of_others {
  using chunks = partial_words<float, false>;

  slab_place<chunks> at;
  const packet* first_statistic = nullptr;  ///< the statistic of rank 0
  uint4 words[others];
  float statistics[others];

  /// Loads everything. Returns the first rank of which something has not arrived, or -1.
  [[nodiscard]] __device__ int missing() {
    packet found[others];
#pragma unroll
    for (int i = 0; i < others; ++i) {
      const std::int64_t away = at.rank_of(i) * at.stride;
      found[i] = load_packet_if(i < at.count, first_statistic + away);
      words[i] = load_sum_words_if(i < at.count, at.base + away);
    }
    int rank = -1;
#pragma unroll
    for (int i = others - 1; i >= 0; --i) {
      statistics[i] = __uint_as_float(static_cast<std::uint32_t>(found[i].data));
      if (found[i].epoch < at.epoch || !chunks::have_arrived(words[i])) rank = at.rank_of(i);
    }
    return rank;
  }
  /// Marks the chunks as not arrived, for the epoch after the next, which has the same slabs.
  __device__ void reset_words() const {
#pragma unroll
    for (int i = 0; i < others; ++i) {
      if (i < at.count) store_sum_words(at.base + at.rank_of(i) * at.stride, chunks::nothing());
    }
  }
};

/// The wait for all parts of a lane. It holds a pointer to them, since a wait copies its argument.
template <class Parts>
struct wait_for_others {
  Parts* parts;
  std::uint64_t expected;
  std::uint64_t seen;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  explicit __device__ wait_for_others(Parts& all)
      : parts(&all), expected(all.at.epoch), seen(all.at.epoch > 2 ? all.at.epoch - 2 : 0) {}

  [[nodiscard]] __device__ std::uint64_t look() {
    peer = parts->missing();
    room = parts->at.room + peer;
    return peer < 0 ? 1 : 0;
  }
};

/// Selects by value: a selection between addresses would force the words into local memory.
[[nodiscard]] __device__ uint4 either(bool first, const uint4& a, const uint4& b) {
  return make_uint4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}

/// A block, whose warps send chunks of this rank's parts, then merge chunks of all ranks.
template <class Element, int most>
class merge_block {
  static constexpr int others = most - 1;
  using words = word_of_elements<Element>;
  static constexpr int elements = 4 * words::each;  ///< per chunk

 public:
  __device__ merge_block(const merge_arguments& given, std::uint64_t epoch)
      : io_(given),
        how_(given.how),
        epoch_(epoch),
        warps_(static_cast<int>(blockDim.x) / 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        slot_(static_cast<int>(blockIdx.x) * warps_ + warp_) {}

  __device__ void run() {
    const bool speaks = threadIdx.x < 32;
    // After a failed wait, which the host reports, nothing is signalled.
    if (__syncthreads_and(speaks ? reserve_slabs(io_.run, how_, epoch_, slot_) : 1) == 0) return;
    send();
    bool merged = true;
    const int turns = how_.turns_of(how_.own_rank);
    for (int turn = first_turn(); turn < turns && merged; turn += all_warps()) merged = take(turn);
    if (__syncthreads_and(merged ? 1 : 0) != 0 && speaks)
      retire_slabs(io_.run, how_, *io_.done, static_cast<int>(gridDim.x), epoch_, slot_);
  }

 private:
  /// A warp's first group of 32 chunks. Groups are distributed over blocks first, so that few
  /// groups run on different SMs.
  [[nodiscard]] __device__ int first_turn() const {
    return warp_ * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  }
  [[nodiscard]] __device__ int all_warps() const { return warps_ * static_cast<int>(gridDim.x); }

  /// Sends each chunk to the ranks that merge it, beginning with the next rank.
  __device__ void send() const {
    const action_note noted(io_.run, action::copy);
    if (!how_.own_heads) return send_to(1, how_.ranks - 1);
    for (int hop = 1; hop < how_.ranks; ++hop) send_to(hop, 1);
  }
  /// Sends the same chunks to `hops` ranks.
  __device__ void send_to(int first_hop, int hops) const {
    const int first = receiver_at_hop(how_.own_rank, first_hop, how_.ranks);
    const int chunks = how_.chunks_of(first);
    for (int turn = first_turn(); turn < how_.turns_of(first); turn += all_warps()) {
      const int i = turn * merge_rows::lanes + lane_;
      if (i >= chunks) continue;
      const auto c = how_.chunk_of(first, i);
      const uint4 own = as_words(own_chunk(c));
      const float statistic = c.at == 0 ? own_statistic(c) : 0;
      for (int hop = first_hop; hop < first_hop + hops; ++hop) {
        const int owner = receiver_at_hop(how_.own_rank, hop, how_.ranks);
        store_sum_words(inbox(owner) + how_.chunk_place(how_.own_rank, i, epoch_), own);
        if (c.at > 0) continue;
        untax::detail::store_packet(
            packets(owner) + how_.statistic_place(how_.own_rank, c.owner_row, epoch_),
            {__float_as_uint(statistic), epoch_});
      }
    }
  }

  /// Merges 32 chunks of all ranks, one per lane. Returns false after a failed wait.
  [[nodiscard]] __device__ bool take(int turn) {
    const action_note noted(io_.run, action::merge);
    const int i = turn * merge_rows::lanes + lane_;
    const bool mine = i < how_.chunks_of(how_.own_rank);
    const auto c = how_.chunk_of(how_.own_rank, mine ? i : 0);
    // The rank's own words are converted like sent ones, so that all ranks merge the same bits,
    // also of NaNs.
    const uint4 own = from_words(as_words(own_chunk(c)));
    const float own_log = own_statistic(c);

    slab_place<partial_words<float, false>> at;
    at.base = inbox(how_.own_rank) + how_.chunk_place(0, i, epoch_);
    at.stride = how_.in_slab();
    at.skipped = how_.own_rank;
    at.count = mine ? how_.ranks - 1 : 0;
    at.epoch = epoch_;
    at.room = how_.slab_of(0, epoch_);
    parts_of_others<others> parts;
    parts.at = at;
    parts.first_statistic = packets(how_.own_rank) + how_.statistic_place(0, c.owner_row, epoch_);
    if (!await(parts)) return false;
    if (!left_out(mutant::sums_reset)) parts.reset_words();

    float high = own_log;
#pragma unroll
    for (int k = 0; k < others; ++k)
      if (k < how_.ranks - 1) high = fmaxf(high, parts.statistics[k]);
    float total = 0;
    float sum[elements] = {};
#pragma unroll
    for (int rank = 0; rank < most; ++rank) {
      if (rank >= how_.ranks) break;
      const int above = rank < others ? rank : others - 1;
      const int below = rank > 0 ? rank - 1 : 0;
      const bool behind = rank > how_.own_rank;
      const bool is_own = rank == how_.own_rank;
      const float log = behind ? parts.statistics[below] : parts.statistics[above];
      const uint4 bits = from_words(either(behind, parts.words[below], parts.words[above]));
      add(is_own ? own_log : log, high, either(is_own, own, bits), total, sum);
    }
    if (mine) finish(c, high, total, sum);
    return true;
  }

  /// Waits for the parts of all lanes, which must all call this. False if the wait failed.
  [[nodiscard]] __device__ bool await(parts_of_others<others>& parts) const {
    if (__any_sync(0xffffffffU, parts.missing() >= 0 ? 1 : 0) == 0) return true;
    lazy_watch watch(device_watch(io_.run.world, slot_));
    wait_for_others mine(parts);
    return wait_for_parts(mine, watch, io_.run, io_.run.operator_name()) == wait_outcome::ok;
  }

  /// Adds a rank's chunk with its weight. If the part is empty, its elements may be anything.
  __device__ void add(float log, float high, const uint4& bits, float& total,
                      float (&sum)[elements]) const {
    if (log == log_of_nothing()) return;
    const float weight = power_of_2((log - reference_of(high)) * io_.to_base_2);
    const std::uint32_t from[4] = {bits.x, bits.y, bits.z, bits.w};
    total += weight;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      float v[words::each];
      words::widen(from[w], v);
#pragma unroll
      for (int j = 0; j < words::each; ++j) sum[w * words::each + j] += weight * v[j];
    }
  }

  /// Scales the sum, rounds it once and stores it, and for a row's first chunk the logarithm.
  __device__ void finish(const merge_rows::chunk& c, float high, float total,
                         float (&sum)[elements]) const {
    const float share = share_of(total);
#pragma unroll
    for (float& s : sum) s *= share;
    const int head = c.head - how_.first_head(how_.own_rank);
    reinterpret_cast<uint4*>(io_.run.out)[c.owner_row * io_.out_stride + c.at] =
        make_uint4(words::narrow(sum), words::narrow(sum + words::each),
                   words::narrow(sum + 2 * words::each), words::narrow(sum + 3 * words::each));
    if (c.at == 0) {
      io_.out_lse[c.token * io_.out_lse_stride + head] =
          high == log_of_nothing() ? high : high + log2f(total) * io_.from_base_2;
    }
  }

  [[nodiscard]] __device__ uint4 own_chunk(const merge_rows::chunk& c) const {
    return reinterpret_cast<const uint4*>(io_.run.in)[how_.given_row(c) * io_.in_stride + c.at];
  }
  [[nodiscard]] __device__ float own_statistic(const merge_rows::chunk& c) const {
    const float given = io_.in_lse[c.token * io_.in_lse_stride + c.head];
    // FlashAttention 2 gives +infinity for rows without keys.
    return given == -log_of_nothing() ? log_of_nothing() : given;
  }
  [[nodiscard]] __device__ uint4* inbox(int rank) const {
    return reinterpret_cast<uint4*>(io_.run.inbox.at(rank));
  }
  [[nodiscard]] __device__ packet* packets(int rank) const {
    return reinterpret_cast<packet*>(io_.run.inbox.at(rank));
  }

  const merge_arguments& io_;
  const merge_rows& how_;
  std::uint64_t epoch_;
  int warps_;
  int warp_;
  int lane_;
  int slot_;
};

/// Each thread holds words and statistics of all ranks: with many ranks, a block has fewer threads.
template <int most>
inline constexpr int merge_threads = most <= 8 ? 512 : 256;

template <class Element, int most>
__global__ void __launch_bounds__(merge_threads<most>)
    merge_partial_attention_kernel(const __grid_constant__ merge_arguments given) {
  if (given.run.launch < 0) return;
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  const block_run run(given.run, given.run.epochs[blockIdx.x], warp_role::worker);
  merge_block<Element, most>(given, run.epoch()).run();
  __syncthreads();
  run.end();
}

template <class Element, int most>
merge_kernel kernel_of() {
  return {reinterpret_cast<const void*>(merge_partial_attention_kernel<Element, most>),
          merge_threads<most>};
}

template <class Element>
merge_kernel kernel_for(int ranks) {
  constexpr int few = 8;
  return ranks <= few ? kernel_of<Element, few>() : kernel_of<Element, most_ranks>();
}

}  // namespace

merge_kernel merge_kernel_for(dtype type, int ranks) {
  switch (type) {
    case dtype::f32:
      return kernel_for<float>(ranks);
    case dtype::f16:
      return kernel_for<f16>(ranks);
    case dtype::bf16:
      return kernel_for<bf16>(ranks);
  }
  return {};
}

}  // namespace untax::gpu
