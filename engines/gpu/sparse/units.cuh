#pragma once

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/kernel.hpp"

namespace untax::sparse {

constexpr int unit_threads = 128;
/// The maximum size of a unit: merge-path steps (rows plus elements), or elements.
constexpr int unit_size = 1024;

namespace detail {

template <class Offset>
__global__ void find_units(unit_of_work how, const Offset* offsets, std::int64_t rows,
                           std::int64_t units, path_point* begins) {
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (unit <= units) begins[unit] = begin_of_unit(how, offsets, rows, unit_size, unit);
}

}  // namespace detail

/// Where each unit begins, and the end of the last one.
class unit_begins {
 public:
  template <class Value, class Offset>
  unit_begins(const device_csr<Value, Offset>& m, unit_of_work how, cudaStream_t stream)
      : count_(units_of(how, m.rows, m.elements, unit_size)), begins_(count_ + 1, stream) {
    if (count_ == 0) return;
    blocks_ = blocks_for(count_, 1);
    detail::find_units<<<blocks_for(count_ + 1, unit_threads), unit_threads, 0, stream>>>(
        how, m.offsets, m.rows, count_, begins_.data());
    gpu::require(cudaGetLastError(), "units of a sparse matrix cannot be found");
  }

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// The grid size, with one block per unit.
  [[nodiscard]] unsigned blocks() const noexcept { return blocks_; }
  [[nodiscard]] const path_point* data() const noexcept { return begins_.data(); }

 private:
  std::int64_t count_;
  unsigned blocks_ = 0;
  device_array<path_point> begins_;
};

}  // namespace untax::sparse
