#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/axes.hpp>
#include <untax/order/order.hpp>
#include <untax/order/remap.hpp>

// The orders of attention that arXiv 2511.02132 compares, under its names. In its formula of the
// last one, a divisor is the number of batches where the number of blocks of a batch is needed.
// Here all of them are bijections for any number of batches, heads, blocks and domains.

namespace untax::order {

/// The blocks of attention, numbered over batch, head of keys, query head of its group, and block
/// of query rows, of which the last changes first.
struct attention_grid {
  int batches = 1;
  int kv_heads = 1;
  int group = 1;  ///< query heads that share keys and values
  /// Blocks of query rows of a head.
  int blocks = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int heads() const { return kv_heads * group; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return batches * heads() * blocks; }
};

/// Orders of attention by name. If attention is causal, each order takes the blocks of a head from
/// the last one on, since that has the most work.
enum class attention_order {
  automatic,    ///< sections if causal, else head_first
  head_first,   ///< head after head
  block_first,  ///< all heads of a sequence at the same time, block after block
  group_first,  ///< the query heads that share keys at the same time
  sections,     ///< as many heads at a time as have keys and values that fit into half of L2. If
             ///< causal, the last section may be larger, so that all multiprocessors end together
};

/// Within a batch the head changes first, so blocks of all its heads run at the same time.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_block_first(const attention_grid& g) {
  return axis_order<3>{{g.batches, g.heads(), g.blocks}, {0, 2, 1}};
}

/// As `naive_block_first`, but each domain has heads that follow each other, if the domains divide
/// the heads.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_block_first(const attention_grid& g,
                                                                    int domains) {
  return composed{repeated{g.batches * g.blocks, full_remap(g.heads(), domains)},
                  naive_block_first(g)};
}

/// Head after head; the blocks of a head are distributed over all domains.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_head_first(const attention_grid& g) {
  return as_numbered{g.size()};
}

/// Head after head in each domain, so the blocks that share keys and values share a cache.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_head_first(const attention_grid& g,
                                                                   int domains) {
  return full_remap(g.size(), domains);
}

/// One head of keys after the other. The query head of its group changes first, then the block. If
/// causal, blocks differ in length, and those that run at the same time have the same length.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto naive_group_first(const attention_grid& g) {
  return axis_order<4>{{g.batches, g.kv_heads, g.group, g.blocks}, {0, 1, 3, 2}};
}

/// As `naive_group_first`, in each domain.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto swizzled_group_first(const attention_grid& g,
                                                                    int domains) {
  return composed{full_remap(g.size(), domains), naive_group_first(g)};
}

/// Between head-first and block-first. A section is a range of `section` query heads, counted over
/// all batches. The heads of a section run at the same time, block after block; then the next
/// section follows. The last section may be larger: it evens out the idle time at the end that
/// blocks of different lengths leave. The first section has the remaining heads.
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

/// For causal attention: takes the last block of each head first, which has the most work. `order`
/// is one of those above.
template <class Order>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr auto longest_first(const Order& order,
                                                             const attention_grid& g) {
  return composed{order, along_axis{g.batches * g.heads(), 1, last_first{g.blocks}}};
}

}  // namespace untax::order
