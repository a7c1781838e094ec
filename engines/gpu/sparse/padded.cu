// ELL and SELL-P: a thread adds a row. A warp loads one column of a slice, for all of its rows,
// with one coalesced access.

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "engines/gpu/sparse/formats.hpp"
#include "engines/gpu/sparse/sums.cuh"
#include "src/sparse/instantiate.hpp"

#include <untax/sparse/spmv.hpp>

namespace untax::sparse {
namespace {

constexpr int threads = 128;

/// The length of the longest row of each slice, computed by one warp per slice.
template <class Offset>
__global__ void find_widths(const Offset* offsets, std::int64_t rows, std::int64_t count,
                            std::int64_t* widths) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  std::int64_t longest = row < rows ? offsets[row + 1] - offsets[row] : 0;
  for (int half = slice_rows / 2; half > 0; half /= 2) {
    const std::int64_t other = __shfl_down_sync(whole_warp, longest, half);
    longest = other > longest ? other : longest;
  }
  if (threadIdx.x % slice_rows == 0 && row / slice_rows < count) widths[row / slice_rows] = longest;
}

/// Offsets of slices that all have the same width.
__global__ void lay_evenly(std::int64_t count, std::int64_t width, std::int64_t* begins) {
  const std::int64_t slice = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (slice <= count) begins[slice] = slice * width * slice_rows;
}
/// Replaces the width of each slice by its number of elements.
__global__ void widen(std::int64_t count, std::int64_t* widths) {
  const std::int64_t slice = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (slice < count) widths[slice] *= slice_rows;
}

__global__ void narrow(std::int64_t count, const std::int64_t* from, std::int32_t* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i < count) to[i] = static_cast<std::int32_t>(from[i]);
}

/// A thread writes a row's elements and padding; rows beyond the last one are only padding.
template <class Value, class Offset>
__global__ void fill_slices(device_csr<Value, Offset> m, std::int64_t count,
                            const std::int64_t* begins, std::int32_t* columns, Value* values) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t slice = row / slice_rows;
  if (slice >= count) return;
  std::int64_t from = row < m.rows ? m.offsets[row] : 0;
  const std::int64_t end = row < m.rows ? m.offsets[row + 1] : 0;
  for (std::int64_t to = begins[slice] + row % slice_rows; to < begins[slice + 1];
       to += slice_rows, ++from) {
    columns[to] = from < end ? m.columns[from] : -1;
    values[to] = from < end ? m.values[from] : Value(0);
  }
}

template <class Value>
__global__ void __launch_bounds__(threads)
    padded_kernel(std::int64_t rows, const std::int64_t* begins, const std::int32_t* columns,
                  const Value* values, spmv_vectors<Value> v) {
  constexpr int ahead = 4;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (row >= rows) return;
  const std::int64_t end = begins[row / slice_rows + 1];
  Value sum = 0;
  // The width of a slice can be any number, so the last iteration may load fewer than `ahead`.
  for (std::int64_t i = begins[row / slice_rows] + row % slice_rows; i < end;
       i += ahead * slice_rows) {
    std::int32_t column[ahead];
    Value value[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      const bool there = i + k * slice_rows < end;
      column[k] = there ? read_once(columns + i + k * slice_rows) : -1;
      value[k] = there ? read_once(values + i + k * slice_rows) : Value(0);
    }
    Value factor[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) factor[k] = column[k] >= 0 ? __ldg(v.x + column[k]) : Value(0);
#pragma unroll
    for (int k = 0; k < ahead; ++k) sum = fma(value[k], factor[k], sum);
  }
  put(v, row, sum);
}

template <class Value>
class padded final : public device_kernel<Value> {
 public:
  template <class Offset>
  padded(const device_csr<Value, Offset>& m, bool sliced, cudaStream_t stream)
      : rows_(m.rows), blocks_(blocks_for(m.rows, threads)), in_(slices_of(m, !sliced, stream)) {}

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (rows_ == 0) return;
    padded_kernel<<<blocks_, threads, 0, stream>>>(rows_, in_.begins.data(), in_.columns.data(),
                                                   in_.values.data(), v);
    gpu::require(cudaGetLastError(), "spmv by slices cannot start");
  }

 private:
  std::int64_t rows_;
  unsigned blocks_;
  slices<Value> in_;
};

}  // namespace

template <class Value, class Offset>
slices<Value> slices_of(const device_csr<Value, Offset>& m, bool all_as_wide, cudaStream_t stream) {
  slices<Value> made;
  if (m.rows == 0) return made;
  made.count = (m.rows + slice_rows - 1) / slice_rows;
  made.begins = device_array<std::int64_t>(made.count + 1, stream);
  device_array<std::int64_t> widths(made.count + 1, stream);
  find_widths<<<blocks_for(m.rows, threads), threads, 0, stream>>>(m.offsets, m.rows, made.count,
                                                                   widths.data());
  const unsigned blocks = blocks_for(made.count + 1, threads);
  if (all_as_wide) {
    with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::Max(scratch, bytes, widths.data(), widths.data() + made.count,
                                    made.count, stream);
    });
    const std::int64_t longest = widths.at(made.count, stream);
    require_padding(m.rows, m.elements, longest);
    lay_evenly<<<blocks, threads, 0, stream>>>(made.count, longest, made.begins.data());
    made.stored = made.count * longest * slice_rows;
  } else {
    widen<<<blocks, threads, 0, stream>>>(made.count, widths.data());
    // The last of the count + 1 sums is the total; the last input does not contribute to it.
    with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(scratch, bytes, widths.data(), made.begins.data(),
                                           made.count + 1, stream);
    });
    made.stored = made.begins.at(made.count, stream);
  }
  gpu::require(cudaGetLastError(), "a sparse matrix cannot be padded");
  made.columns = device_array<std::int32_t>(made.stored, stream);
  made.values = device_array<Value>(made.stored, stream);
  fill_slices<<<blocks_for(made.count * slice_rows, threads), threads, 0, stream>>>(
      m, made.count, made.begins.data(), made.columns.data(), made.values.data());
  gpu::require(cudaGetLastError(), "a sparse matrix cannot be padded");
  return made;
}

template <class Value>
device_array<std::int32_t> narrow_begins(const slices<Value>& from, cudaStream_t stream) {
  if (from.stored > 0x7fffffff)
    throw error(errc::unsupported,
                fmt::format("slices have {} elements, which 32 bits do not count", from.stored));
  device_array<std::int32_t> made(from.count + 1, stream);
  narrow<<<blocks_for(from.count + 1, threads), threads, 0, stream>>>(
      from.count + 1, from.begins.data(), made.data());
  gpu::require(cudaGetLastError(), "begins of slices cannot be copied");
  return made;
}
template device_array<std::int32_t> narrow_begins(const slices<float>& from, cudaStream_t stream);
template device_array<std::int32_t> narrow_begins(const slices<double>& from, cudaStream_t stream);

template <class Value, class Offset>
device_kernel_of<Value> make_device_padded(const device_csr<Value, Offset>& matrix, bool sliced,
                                           cudaStream_t stream) {
  return std::make_unique<padded<Value>>(matrix, sliced, stream);
}

#define UNTAX_MAKE(Value, Offset)                                                              \
  template slices<Value> slices_of(const device_csr<Value, Offset>& matrix, bool all_as_wide,  \
                                   cudaStream_t stream);                                       \
  template device_kernel_of<Value> make_device_padded(const device_csr<Value, Offset>& matrix, \
                                                      bool sliced, cudaStream_t stream);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
