#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/stream_ref.hpp>

#include "engines/gpu/flash_attention/order.hpp"
#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// The positions of an order below `second` are for the multiprocessors of queue 0, the others for
/// those of queue 1. A block that finds its queue empty takes from the other queue.
struct flash_queues {
  std::vector<std::uint8_t> of_sm;  ///< the queue of each multiprocessor, 0 or 1
  int second = 0;
};

/// out = softmax(scale * q k^T) v for every query of every sequence, on one Hopper GPU: bf16 or
/// fp16 elements, fp32 sums and statistics, bitwise reproducible.
///
/// The constructor allocates all memory. Runs of one object must not overlap, since they share
/// counters; different objects are independent.
class flash_runner {
 public:
  /// On the current device. Throws `unsupported` if that is not a Hopper GPU, if heads do not have
  /// 64, 128 or 256 elements, and for fp32; `invalid_argument` for other invalid shapes;
  /// `out_of_memory`.
  flash_runner(const flash_shape& shape, order::attention_order how);
  /// With the caller's order: `table` has the tile that is started at each position, and is a
  /// bijection on the numbers below flash_grid(shape).size().
  flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table);
  /// The same, with two queues of positions, for multiprocessors of two kinds.
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
