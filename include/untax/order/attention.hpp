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

/// Orders of attention by name, for those who plan it. Where causal, blocks of a head come from the
/// last one on, which has the most to do.
enum class attention_order {
  automatic,    ///< sections where causal, else head_first
  head_first,   ///< head after head
  block_first,  ///< all heads of a sequence at the same time
  group_first,  ///< the query heads that share keys at the same time
  sections,     ///< as many heads at the same time as keys and values of fit into half of L2, and
                ///< where causal, at last as many as keep all multiprocessors busy to the end
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

/// Between head-first and block-first: `section` query heads that follow each other, over batches,
/// are under way at the same time, block after block, then the next ones. The last section may be
/// larger, so that there is enough to even out what blocks of different lengths leave idle at the
/// end; the first one has what is left.
struct head_sections {
  attention_grid grid;
  int section = 1;
  int last = section;  ///< heads of the last section

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return grid.size(); }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    const run_of_heads of = section_of(position / grid.blocks);
    const int within = position - of.first * grid.blocks;
    return (of.first + within % of.count) * grid.blocks + within / of.count;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    const int head = block / grid.blocks;
    const run_of_heads of = section_of(head);
    return of.first * grid.blocks + block % grid.blocks * of.count + head - of.first;
  }

 private:
  struct run_of_heads {
    int first;
    int count;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr run_of_heads section_of(int head) const {
    const int all = grid.batches * grid.heads();
    const int of_last = last < all ? last : all;
    const int before = all - of_last;
    if (head >= before) return {before, of_last};
    const int of_first = before % section;
    if (head < of_first) return {0, of_first};
    return {of_first + (head - of_first) / section * section, section};
  }
};

/// For causal attention: in each head the last block first, which has the most to do. `Order` is
/// one of those above.
template <class Order>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto longest_first(const Order& order,
                                                             const attention_grid& g) {
  return composed{order, along_axis{g.batches * g.heads(), 1, last_first{g.blocks}}};
}

}  // namespace untax::order
