#pragma once

#include "engines/sm90/gemm/config.hpp"
#include "engines/sm90/gemm/protocol.cuh"
#include "engines/sm90/transfer/step_mover.cuh"
#include "ops/all_gather_gemm/gather.hpp"

namespace untax {

/// The part of a thread of a block in a gather: see engines/sm90/gemm/protocol.cuh for the form.
class gather_traffic::at_block {
 public:
  static constexpr bool moves = true;
  static constexpr bool waits = true;
  static constexpr bool signals = false;

  __device__ at_block(const gather_traffic& traffic, const CUtensorMap& a, const CUtensorMap& b,
                      const CUtensorMap& c, int slices)
      : t_(traffic),
        a_(a),
        b_(b),
        c_(c),
        slices_(slices),
        epoch_(traffic.moved.run.epochs[blockIdx.x] + 1),
        arrivals_(traffic.moved.run, static_cast<int>(blockIdx.x)) {}

  /// A leading block, of which one warp drives the copy engine.
  __device__ void lead(std::byte* shared) {
    bulk_ring<> ring(device_block(), *reinterpret_cast<bulk_ring<>::memory*>(shared));
    if (threadIdx.x >= 32) return;
    auto mover = mover_with(sm90::by_bulk_copies{ring}, static_cast<int>(blockIdx.x));
    t_.how.move(static_cast<int>(blockIdx.x), epoch_, mover);
    mover.finish();
  }
  /// One of the four warps beside those that multiply. They push: a pull takes blocks for itself.
  __device__ void beside(int warp) {
    const bool all = t_.who == gather_movers::all_blocks;
    if (!all && (t_.who != gather_movers::warps || warp != 3)) return;
    const int me = all ? number() * 4 + warp : number();
    if (me >= t_.movers) return;
    auto mover = mover_with(sm90::by_stores{}, me);
    t_.how.push({me, t_.movers}, epoch_, mover);
    mover.finish();
  }

  /// The last block that has read what it reads says so to the ranks that wrote it.
  __device__ void finish() {
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const int lane = static_cast<int>(threadIdx.x);
    bool last = false;
    if (lane == 0) {
      t_.moved.run.epochs[blockIdx.x] = epoch_;
      if (number() >= 0)
        last = count_block() == epoch_ * static_cast<std::uint64_t>(t_.multiplying);
    }
    last = __any_sync(0xffffffffU, last) != 0;
    if (last && lane > 0 && lane < t_.how.world()) {
      const int source = source_at_hop(t_.how.rank(), lane, t_.how.world());
      if (t_.how.pieces_of(source) == 0) return;
      const room r = t_.how.inbox_room(source, t_.how.rank(), 0, epoch_);
      if (r.free >= 0)
        cuda_memory::raise_release(
            *t_.moved.run.counters.at(source, static_cast<std::size_t>(r.free)), r.use);
    }
  }

  [[nodiscard]] __device__ sm90::stretch stretch_of(int row, int slice) const {
    const int set = t_.how.set_of(epoch_);
    if (t_.segment_rows > 0) {
      const int s = row / t_.segment_rows;
      return {&t_.a[s], row - s * t_.segment_rows + row_in_map(s, set), &b_, 0, slices_};
    }
    const int s = slice / t_.segment_slices;
    const int first = s * t_.segment_slices;
    const CUtensorMap* b = t_.how.by_rows() ? &b_ : &t_.b_or_c[s];
    return {&t_.a[s], row + row_in_map(s, set), b, first, first + t_.segment_slices};
  }
  [[nodiscard]] __device__ static constexpr int copies() { return 1; }
  [[nodiscard]] __device__ sm90::destination copy_of(int row, int /*copy*/) const {
    if (t_.segment_rows == 0) return {&c_, row};
    const int s = row / t_.segment_rows;
    return {&t_.b_or_c[s], row - s * t_.segment_rows};
  }

  [[nodiscard]] __device__ bool come(int row, int rows, int begin, int end) {
    if (t_.awaited || !going_) return true;
    const needed what = needed_of(row, rows, begin, end);
    if (!arrivals_.come(what.count, [&](int i) { return part_of(what, i); })) return false;
    // The copy engine reads what was acquired.
    cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
    return true;
  }
  /// After a wait that ended badly the block goes on with whatever is there: the result is worth
  /// nothing, which `world::check` says, but nobody is left waiting in the block.
  __device__ void await(int row, int rows, int begin, int end) {
    const needed what = needed_of(row, rows, begin, end);
    going_ = arrivals_.await(what.count, [&](int i) { return part_of(what, i); });
    cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
  }

 private:
  /// The pieces that a rectangle of the whole A touches, of ranks `first` to `last`.
  struct needed {
    range rows;
    range cols;
    int first = 0;
    int last = -1;
    int count = 0;
  };

  /// The number of this block among those that multiply.
  [[nodiscard]] __device__ int number() const { return static_cast<int>(blockIdx.x) - t_.leading; }

  template <class Copier>
  [[nodiscard]] __device__ sm90::step_mover<Copier> mover_with(const Copier& copier, int mover) {
    return {t_.moved, copier, static_cast<int>(gridDim.x) + mover};
  }

  /// Counts this block among those that are done, after all its reads; acquires what the others
  /// did.
  [[nodiscard]] __device__ std::uint64_t count_block() const {
    return 1 + cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(*t_.done).fetch_add(
                   1, cuda::memory_order_acq_rel);
  }

  [[nodiscard]] __device__ bool is_own(int source) const {
    return source == t_.how.rank() && !t_.how.collected();
  }
  /// Where row 0 of a segment lies in what its map describes.
  [[nodiscard]] __device__ int row_in_map(int segment, int set) const {
    const int source = t_.sources[segment];
    return is_own(source) ? 0 : static_cast<int>(t_.how.inbox_row(source, set));
  }

  [[nodiscard]] __device__ needed needed_of(int row, int rows, int begin, int end) const {
    needed what;
    const bool by_row_segments = t_.segment_rows > 0;
    const int s = by_row_segments ? row / t_.segment_rows : begin / t_.segment_slices;
    const int source = t_.sources[s];
    if (is_own(source)) return what;
    if (t_.how.by_rows()) {
      what.cols = {std::int64_t{begin} * sm90::slice_depth,
                   std::int64_t{end - begin} * sm90::slice_depth};
      what.rows = {row, rows};
      if (by_row_segments) what.rows.begin += t_.how.shard(source).begin - s * t_.segment_rows;
      what.first = by_row_segments ? source : t_.how.owner_of(row);
      what.last = by_row_segments ? source : t_.how.owner_of(row + rows - 1);
    } else {
      const int first = s * t_.segment_slices;
      what.cols = {t_.how.shard(source).begin + std::int64_t{begin - first} * sm90::slice_depth,
                   std::int64_t{end - begin} * sm90::slice_depth};
      what.rows = {row, rows};
      what.first = what.last = source;
    }
    for (int rank = what.first; rank <= what.last; ++rank)
      what.count += t_.how.pieces_within(rank, what.rows, what.cols).count();
    return what;
  }

  [[nodiscard]] __device__ sm90::held_wait part_of(const needed& what, int i) const {
    for (int rank = what.first; rank <= what.last; ++rank) {
      const piece_block pieces = t_.how.pieces_within(rank, what.rows, what.cols);
      if (i < pieces.count()) {
        const room r = t_.how.inbox_room(rank, t_.how.rank(), pieces.at(i), epoch_);
        return {t_.moved.run.counters.local(static_cast<std::size_t>(r.ready)),
                r.use,
                0,
                r.producer,
                r.number,
                verb::acquire};
      }
      i -= pieces.count();
    }
    return {};
  }

  const gather_traffic& t_;
  const CUtensorMap& a_;
  const CUtensorMap& b_;
  const CUtensorMap& c_;
  int slices_;
  std::uint64_t epoch_;
  sm90::room_waits arrivals_;
  bool going_ = true;
};

}  // namespace untax
