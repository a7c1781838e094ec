#include "engines/gpu/flash_attention/order.hpp"

#include <algorithm>

#include "engines/gpu/flash_attention/tile.hpp"

namespace untax::gpu {
namespace {

/// Query heads whose keys and values fit into half of L2: whole groups, and one at least.
int heads_at_once(const flash_shape& shape, std::size_t l2_bytes) {
  const std::size_t of_head = std::size_t{4} * static_cast<std::size_t>(shape.head_dim) *
                              static_cast<std::size_t>(std::max(shape.keys, 1));
  const std::size_t most =
      static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.kv_heads);
  const std::size_t fitting = std::clamp<std::size_t>(l2_bytes / 2 / of_head, 1, most);
  return static_cast<int>(fitting) * shape.group();
}

template <class Order>
std::vector<std::int32_t> table_of(const Order& order) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(order.size()));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = order.block(static_cast<int>(i));
  return table;
}

template <class Order>
std::vector<std::int32_t> table_of(const Order& order, const flash_shape& shape) {
  if (shape.causal) return table_of(order::longest_first(order, flash_grid(shape)));
  return table_of(order);
}

}  // namespace

order::attention_grid flash_grid(const flash_shape& shape) {
  return {shape.batch, shape.kv_heads, shape.group(), flash_tiles::of(shape).row_blocks};
}

std::vector<std::int32_t> flash_order_table(const flash_shape& shape, order::attention_order how,
                                            std::size_t l2_bytes) {
  const order::attention_grid grid = flash_grid(shape);
  if (grid.size() == 0) return {};
  if (how == order::attention_order::automatic)
    how = shape.causal ? order::attention_order::sections : order::attention_order::head_first;
  switch (how) {
    case order::attention_order::block_first:
      return table_of(order::naive_block_first(grid), shape);
    case order::attention_order::group_first:
      return table_of(order::naive_group_first(grid), shape);
    case order::attention_order::sections:
      return table_of(order::head_sections{grid, heads_at_once(shape, l2_bytes)}, shape);
    default:
      return table_of(order::naive_head_first(grid), shape);
  }
}

}  // namespace untax::gpu
