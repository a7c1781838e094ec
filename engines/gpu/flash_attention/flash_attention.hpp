#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/stream_ref.hpp>

#include "engines/gpu/flash_attention/order.hpp"
#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// out = softmax(scale * q k^T) v for every query of every sequence, on one GPU of Hopper: bf16 or
/// fp16 elements, fp32 sums and statistics, the same bits every time.
///
/// Everything that is allocated is allocated by the constructor. Runs of one object have to follow
/// each other (they share counters); objects are independent.
class flash_runner {
 public:
  /// On the current device. Throws `unsupported` if that is no Hopper GPU, for heads that have not
  /// 64, 128 or 256 elements, and for fp32; `invalid_argument` for other shapes that are none;
  /// `out_of_memory`.
  flash_runner(const flash_shape& shape, order::attention_order how);
  /// With an order of the caller's, the tile that is started at each position: a bijection on the
  /// numbers below flash_grid(shape).size().
  flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table);
  flash_runner(flash_runner&&) noexcept;
  flash_runner& operator=(flash_runner&&) noexcept;
  ~flash_runner();

  /// Starts the kernel. May be captured into a graph.
  void run(const flash_operands& operands, stream_ref stream) const;

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu
