#include "engines/gpu/flash_attention/order.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "engines/gpu/flash_attention/tile.hpp"

namespace untax::gpu {
namespace {

/// The number of query heads whose keys and values fit into half of L2: whole groups, at least one.
int heads_at_once(const flash_shape& shape, std::size_t l2_bytes) {
  const std::size_t of_head = std::size_t{4} * static_cast<std::size_t>(shape.head_dim) *
                              static_cast<std::size_t>(std::max(shape.keys, 1));
  const std::size_t most =
      static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.kv_heads);
  const std::size_t fitting = std::clamp<std::size_t>(l2_bytes / 2 / of_head, 1, most);
  return static_cast<int>(fitting) * shape.group();
}

/// The cost of each tile of a head, from the first rows to the last, in blocks of keys.
std::vector<int> costs_of(const flash_shape& shape) {
  constexpr int of_a_tile = 2;  // for loading queries and storing results
  const flash_tiles tiles = flash_tiles::of(shape);
  std::vector<int> costs(static_cast<std::size_t>(tiles.row_blocks));
  for (int i = 0; i < tiles.row_blocks; ++i)
    costs[static_cast<std::size_t>(i)] =
        of_a_tile + tiles.tile(i, {0, shape.queries}, {0, shape.keys}).blocks;
  return costs;
}

/// The time when the last multiprocessor ends, if each takes the next tile whenever it is free.
template <class Order>
int end_of(const Order& order, const std::vector<int>& costs, int num_sms) {
  std::priority_queue<int, std::vector<int>, std::greater<>> free;
  for (int i = 0; i < num_sms; ++i) free.push(0);
  int last = 0;
  for (int i = 0; i < order.size(); ++i) {
    const int end = free.top() + costs[static_cast<std::size_t>(order.block(i)) % costs.size()];
    free.pop();
    free.push(end);
    last = std::max(last, end);
  }
  return last;
}

/// Sections of `heads_at_once` heads. If causal, the last section may be larger, so that all
/// multiprocessors end together: the largest tried size whose end is close to the best. Its limit
/// lets `least_shares` blocks share keys and values, else memory bandwidth would not suffice.
order::head_sections sections_of(const flash_shape& shape, const flash_target& on) {
  constexpr int waves = 64;        // with more, too little time is idle at the end for a search
  constexpr int least_shares = 4;  // blocks that read the same keys and values
  constexpr double close = 1.005;
  const order::attention_grid grid = flash_grid(shape);
  const int fitting = heads_at_once(shape, on.l2_bytes);
  order::head_sections chosen{grid, fitting};
  if (!shape.causal || grid.size() > waves * on.num_sms) return chosen;
  const int most = std::min(std::max(fitting, on.num_sms / least_shares * shape.group()),
                            shape.batch * shape.heads);
  const std::vector<int> costs = costs_of(shape);
  const auto end_with = [&](int last) {
    return end_of(order::longest_first(order::head_sections{grid, fitting, last}, grid), costs,
                  on.num_sms);
  };
  std::vector<int> ends;
  std::vector<int> sizes;
  for (int last = fitting;; last = std::min(2 * last, most)) {
    sizes.push_back(last);
    ends.push_back(end_with(last));
    if (last >= most) break;
  }
  const double best = *std::ranges::min_element(ends);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] <= close * best) chosen.last = sizes[i];
  }
  return chosen;
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
                                            const flash_target& on) {
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
      return table_of(sections_of(shape, on), shape);
    default:
      return table_of(order::naive_head_first(grid), shape);
  }
}

}  // namespace untax::gpu
