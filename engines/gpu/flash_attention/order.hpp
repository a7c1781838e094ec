#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/order/attention.hpp>

#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// The tiles of a shape as `untax/order` numbers blocks.
[[nodiscard]] order::attention_grid flash_grid(const flash_shape& shape);

/// The tile that is started at each position. `l2_bytes`: of the GPU's second cache.
[[nodiscard]] std::vector<std::int32_t> flash_order_table(const flash_shape& shape,
                                                          order::attention_order how,
                                                          std::size_t l2_bytes);

}  // namespace untax::gpu
