#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/axes.hpp>
#include <untax/order/order.hpp>
#include <untax/order/remap.hpp>

// The orders of attention that arXiv 2511.02132 compares, by their names there. Its formula of the
// last one divides by the number of batches where it needs the blocks of one; here all of them are
// bijections for any batches, heads, blocks and domains.

namespace untax::order {

/// The blocks of attention, numbered over batch, head of keys, query head that shares it, block of
/// query rows; the last changes first.
struct attention_grid {
  int batches = 1;
  int kv_heads = 1;
  int group = 1;  ///< query heads that share keys and values
  int blocks = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int heads() const { return kv_heads * group; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return batches * heads() * blocks; }
};

/// Within a batch the head changes first: all heads are under way at the same time.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_block_first(const attention_grid& g) {
  return axis_order<3>{{g.batches, g.heads(), g.blocks}, {0, 2, 1}};
}

/// The same, and each domain has heads that follow each other, where domains divide the heads.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_block_first(const attention_grid& g,
                                                                    int domains) {
  return composed{repeated{g.batches * g.blocks, full_remap(g.heads(), domains)},
                  naive_block_first(g)};
}

/// Head after head; every domain has a part of each.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_head_first(const attention_grid& g) {
  return as_numbered{g.size()};
}

/// Head after head in each domain: the blocks that share keys and values share a cache.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_head_first(const attention_grid& g,
                                                                   int domains) {
  return full_remap(g.size(), domains);
}

/// One head of keys after the other; of those that share it, the query head changes first. Where
/// causal blocks differ in length, those that run at the same time are equally long.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_group_first(const attention_grid& g) {
  return axis_order<4>{{g.batches, g.kv_heads, g.group, g.blocks}, {0, 1, 3, 2}};
}

/// The same in each domain.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_group_first(const attention_grid& g,
                                                                    int domains) {
  return composed{full_remap(g.size(), domains), naive_group_first(g)};
}

/// For causal attention: in each head the last block first, which has the most to do. `Order` is
/// one of those above.
template <class Order>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto longest_first(const Order& order,
                                                             const attention_grid& g) {
  return composed{order, along_axis{g.batches * g.heads(), 1, last_first{g.blocks}}};
}

}  // namespace untax::order
