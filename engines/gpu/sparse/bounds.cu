#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_reduce.cuh>

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/formats.hpp"

namespace untax::sparse {
namespace {

/// What some rows are like: sums, and extremes.
struct row_sums {
  double squares;
  std::int64_t shortest;
  std::int64_t longest;
  std::int64_t padded;
};

/// Those of a slice of rows, by its number.
template <class Offset>
struct sums_of_slice {
  const Offset* offsets;
  std::int64_t rows;

  __device__ row_sums operator()(std::int64_t slice) const {
    row_sums made{0, 0x7fffffffffffffff, 0, 0};
    const std::int64_t first = slice * slice_rows;
    const std::int64_t behind = first + slice_rows < rows ? first + slice_rows : rows;
    std::int64_t begin = offsets[first];
    for (std::int64_t row = first; row < behind; ++row) {
      const std::int64_t end = offsets[row + 1];
      const std::int64_t length = end - begin;
      made.squares += static_cast<double>(length) * static_cast<double>(length);
      made.shortest = length < made.shortest ? length : made.shortest;
      made.longest = length > made.longest ? length : made.longest;
      begin = end;
    }
    made.padded = made.longest * slice_rows;
    return made;
  }
};

struct join_sums {
  __device__ row_sums operator()(const row_sums& a, const row_sums& b) const {
    return {a.squares + b.squares, a.shortest < b.shortest ? a.shortest : b.shortest,
            a.longest > b.longest ? a.longest : b.longest, a.padded + b.padded};
  }
};

}  // namespace

template <class Offset>
row_bounds bounds_of_rows(std::int64_t rows, const Offset* offsets, stream_ref on) {
  if (rows == 0) return {};
  const auto stream = static_cast<cudaStream_t>(on.handle);
  const device_array<row_sums> found(1, stream);
  const std::int64_t count = (rows + slice_rows - 1) / slice_rows;
  with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(
        scratch, bytes, thrust::counting_iterator<std::int64_t>(0), found.data(), count,
        join_sums{}, sums_of_slice<Offset>{offsets, rows}, row_sums{0, 0x7fffffffffffffff, 0, 0},
        stream);
  });
  Offset elements = 0;
  gpu::require(
      cudaMemcpyAsync(&elements, offsets + rows, sizeof(Offset), cudaMemcpyDeviceToHost, stream),
      "cannot read a number back");
  const row_sums sums = found.at(0, stream);
  const double mean = static_cast<double>(elements) / static_cast<double>(rows);
  const double variance = sums.squares / static_cast<double>(rows) - mean * mean;
  return {sums.shortest, sums.longest, variance > 0 ? variance : 0, sums.padded};
}

template row_bounds bounds_of_rows(std::int64_t, const std::int32_t*, stream_ref);
template row_bounds bounds_of_rows(std::int64_t, const std::int64_t*, stream_ref);

}  // namespace untax::sparse
