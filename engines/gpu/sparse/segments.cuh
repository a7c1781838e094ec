#pragma once

#include <cub/block/block_scan.cuh>

#include "engines/gpu/sparse/sums.cuh"
#include "engines/gpu/sparse/units.cuh"

namespace untax::sparse {

/// The terms of a unit in shared memory, and where its segments begin. `add_segments` replaces the
/// first term of each segment by the segment's sum. A thread adds eight consecutive terms, and a
/// scan over the block combines threads, so the time does not depend on row lengths.
template <class Value>
class unit_terms {
  static constexpr int each = unit_size / unit_threads;

  /// The sum of the terms from the last segment begin on, or of all terms if `begin` is -1 (none).
  struct open_segment {
    int begin;
    Value sum;
  };
  struct join {
    __device__ open_segment operator()(const open_segment& a, const open_segment& b) const {
      return b.begin >= 0 ? b : open_segment{a.begin, a.sum + b.sum};
    }
  };
  using scan = cub::BlockScan<open_segment, unit_threads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  /// The block's shared memory.
  struct storage {
    Value terms[unit_size + unit_size / each];
    alignas(16) unsigned char begins[unit_size];
    typename scan::TempStorage scanned;
  };

  /// All threads of the block must call this. It ends with a barrier.
  __device__ explicit unit_terms(storage& shared) : shared_(shared) {
    reinterpret_cast<uint2*>(shared_.begins)[threadIdx.x] = {0, 0};
    __syncthreads();
  }

  /// All threads issue the loads of `count` elements. `begin_at` may be called while these arrive.
  __device__ void fetch(const Value* values, const std::int32_t* columns, int count) {
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * unit_threads;
      column_[k] = i < count ? read_once(columns + i) : -1;
      value_[k] = i < count ? read_once(values + i) : Value(0);
    }
  }
  /// Multiplies the loaded elements with x and stores the terms.
  __device__ void multiply(const Value* x) {
    Value factor[each];
#pragma unroll
    for (int k = 0; k < each; ++k) factor[k] = column_[k] >= 0 ? __ldg(x + column_[k]) : Value(0);
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * unit_threads;
      if (column_[k] >= 0) shared_.terms[place(i)] = value_[k] * factor[k];
    }
  }

  /// Marks this term as the begin of a segment.
  __device__ void begin_at(int term) { shared_.begins[term] = 1; }

  /// All threads of the block must call this, after a barrier. The first term must begin a segment.
  __device__ void add_segments(int count) {
    const int first = static_cast<int>(threadIdx.x) * each;
    const uint2 flags = reinterpret_cast<const uint2*>(shared_.begins)[threadIdx.x];
    open_segment mine{-1, 0};
    Value ahead = 0;  // part of a segment that began in an earlier thread
#pragma unroll
    for (int k = 0; k < each; ++k) {
      if (first + k >= count) break;
      const unsigned word = k < 4 ? flags.x : flags.y;
      if ((word >> (8 * (k % 4)) & 1U) != 0) {
        if (mine.begin >= 0) {
          shared_.terms[place(mine.begin)] = mine.sum;
        } else {
          ahead = mine.sum;
        }
        mine = {first + k, 0};
      }
      mine.sum += shared_.terms[place(first + k)];
    }
    open_segment before{-1, 0};
    open_segment all{-1, 0};
    scan(shared_.scanned).ExclusiveScan(mine, before, open_segment{-1, 0}, join{}, all);
    // The segment that was open before this thread ends here: this is its complete sum. The store
    // is safe: threads read only their own terms, and the scan's barrier follows all reads.
    if (mine.begin >= 0 && before.begin >= 0)
      shared_.terms[place(before.begin)] = before.sum + ahead;
    if (threadIdx.x == 0 && all.begin >= 0) shared_.terms[place(all.begin)] = all.sum;
    __syncthreads();
  }

  /// The sum of the segment that begins at `term`.
  [[nodiscard]] __device__ Value sum_from(int term) const { return shared_.terms[place(term)]; }

 private:
  /// Padded, so that threads that read every eighth term hit different banks.
  [[nodiscard]] static __device__ int place(int term) { return term + term / each; }

  storage& shared_;
  std::int32_t column_[each];  ///< -1: no element
  Value value_[each];
};

/// A unit's partial sum of a row that belongs to another unit.
template <class Value>
struct device_carry {
  std::int64_t row;  ///< -1: none
  Value sum;
};

}  // namespace untax::sparse
