#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/order/attention.hpp>

#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// The tiles of a shape, as a grid of blocks that the orders of `untax/order` number.
[[nodiscard]] order::attention_grid flash_grid(const flash_shape& shape);

/// The GPU that an order is chosen for.
struct flash_target {
  std::size_t l2_bytes = 0;
  int num_sms = 1;
};

/// The number of the tile at each position of an order.
[[nodiscard]] std::vector<std::int32_t> flash_order_table(const flash_shape& shape,
                                                          order::attention_order how,
                                                          const flash_target& on);

}  // namespace untax::gpu
