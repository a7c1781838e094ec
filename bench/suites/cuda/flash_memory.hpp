#pragma once

#include "bench/suites/cuda/vectors.cuh"
#include "bench/suites/flash_attention.hpp"
#include "engines/gpu/flash_attention/flash_attention.hpp"

namespace untax::bench {

/// Random operands of a problem on the current device.
class flash_memory {
 public:
  flash_memory(const flash_problem& p, cudaStream_t stream);

  [[nodiscard]] gpu::flash_shape shape() const;
  [[nodiscard]] gpu::flash_operands operands() const;

 private:
  struct size {
    std::int64_t rows;
    std::int64_t columns;
    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(2 * rows * columns); }
  };
  void fill(const device_buffer& to, const size& subject, std::uint64_t seed,
            cudaStream_t stream) const;

  flash_problem problem_;
  size of_queries_;
  size of_keys_;
  device_buffer queries_;
  device_buffer keys_;
  device_buffer values_;
  device_buffer out_;
};

}  // namespace untax::bench
