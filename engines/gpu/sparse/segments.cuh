#pragma once

#include <cub/block/block_scan.cuh>

#include "engines/gpu/sparse/sums.cuh"
#include "engines/gpu/sparse/units.cuh"

namespace untax::sparse {

/// The terms of a unit in shared memory, and where its segments begin. Each segment's sum is in the
/// place of its first term in the end. A thread adds eight terms in their order, and a scan over
/// the block joins what threads have of a segment, so that any lengths of rows take the same time.
template <class Value>
class unit_terms {
  static constexpr int each = unit_size / unit_threads;

  /// Terms behind the last begin of a segment, which is -1 if there is none.
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
  /// What a block shares.
  struct storage {
    Value terms[unit_size + unit_size / each];
    alignas(16) unsigned char begins[unit_size];
    typename scan::TempStorage scanned;
  };

  /// By all threads.
  __device__ explicit unit_terms(storage& shared) : shared_(shared) {
    reinterpret_cast<uint2*>(shared_.begins)[threadIdx.x] = {0, 0};
    __syncthreads();
  }

  /// Asks for `count` elements, by all threads. Segments can be begun until they are there.
  __device__ void fetch(const Value* values, const std::int32_t* columns, int count) {
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * unit_threads;
      column_[k] = i < count ? read_once(columns + i) : -1;
      value_[k] = i < count ? read_once(values + i) : Value(0);
    }
  }
  /// Their products.
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

  /// A segment begins at this term.
  __device__ void begin_at(int term) { shared_.begins[term] = 1; }

  /// By all threads, after a barrier. The first term has to begin a segment.
  __device__ void add_segments(int count) {
    const int first = static_cast<int>(threadIdx.x) * each;
    const uint2 flags = reinterpret_cast<const uint2*>(shared_.begins)[threadIdx.x];
    open_segment mine{-1, 0};
    Value ahead = 0;  // of a segment that began before
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
    // What the segment in which this thread began has in all, if it ended here. No thread reads
    // terms of others, and the scan has a barrier behind all reads.
    if (mine.begin >= 0 && before.begin >= 0)
      shared_.terms[place(before.begin)] = before.sum + ahead;
    if (threadIdx.x == 0 && all.begin >= 0) shared_.terms[place(all.begin)] = all.sum;
    __syncthreads();
  }

  /// The sum of the segment that begins there.
  [[nodiscard]] __device__ Value sum_from(int term) const { return shared_.terms[place(term)]; }

 private:
  /// Threads that read every eighth term hit different banks.
  [[nodiscard]] static __device__ int place(int term) { return term + term / each; }

  storage& shared_;
  std::int32_t column_[each];  ///< -1: there is none
  Value value_[each];
};

/// What a unit has of a row of another unit.
template <class Value>
struct device_carry {
  std::int64_t row;  ///< -1: nothing
  Value sum;
};

}  // namespace untax::sparse
