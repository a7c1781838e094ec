#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/stream_ref.hpp>

#include "engines/gpu/flash_attention/order.hpp"
#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// Positions of an order below `second` belong to queue 0, all other positions to queue 1. A block
/// takes positions from the queue of its multiprocessor, and from the other one if that is empty.
struct flash_queues {
  std::vector<std::uint8_t> of_sm;  ///< the queue of each multiprocessor, 0 or 1
  int second = 0;
};

/// out = softmax(scale * q k^T) v for every query of every sequence, on one Hopper GPU: bf16 or
/// fp16 elements, fp32 sums and statistics, bitwise reproducible.
///
/// The constructor allocates all memory. Runs of one object must not overlap, since they share
/// counters (the operator keeps them in order); different objects are independent.
class flash_runner {
 public:
  /// On the current device. Throws `unsupported` if that is not a Hopper GPU, if heads do not have
  /// 64, 128 or 256 elements, and for fp32; `invalid_argument` for other invalid shapes;
  /// `out_of_memory`.
  flash_runner(const flash_shape& shape, order::attention_order how);
  /// With the caller's order: `table` holds the number of the tile at each position, and must be a
  /// permutation of the numbers below flash_grid(shape).size().
  flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table);
  /// With the caller's order and two queues of positions, for two groups of multiprocessors.
  flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table,
               const flash_queues& queues);
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
