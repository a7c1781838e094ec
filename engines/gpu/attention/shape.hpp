#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/types.hpp>
#include <untax/order/divider.hpp>

namespace untax::gpu {

/// The cost of finishing an item to a block, in tiles of keys.
inline constexpr int end_tiles = 6;

/// Packets per row of a partial result in flight. Each carries four elements, except for the last
/// one, which carries the statistics.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int packets_of_row(int width) noexcept {
  return width / 4 + 1;
}

/// One token of each sequence attends to the keys of that sequence that a rank holds.
struct attention_shape {
  int batch = 1;
  int kv_heads = 1;
  int group = 1;  ///< query heads per key head, from 1 to 16
  int head_dim = 128;
  std::int64_t keys = 0;   ///< per sequence at most; without pages, also rows per sequence
  int page_size = 0;       ///< 0: no pages
  order::divider by_page;  ///< divides by page_size
  std::int64_t pages = 0;  ///< entries of the page table for a sequence
  /// 0: blocks share keys as that balances them. Otherwise the keys of each sequence are in so many
  /// parts, which are items of their own, so that the bits of a result depend on its sequence
  /// alone.
  int parts = 0;
  float scale = 1;      ///< factor of the logits
  float logit_cap = 0;  ///< 0: no cap
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;  ///< fp32 or bf16

  /// The number of items. An item is the work for one key head of one sequence.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int items() const noexcept { return batch * kv_heads; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t rows() const noexcept {
    return static_cast<std::int64_t>(items()) * group;
  }
  /// The number of partial results of a query head that this rank stores.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int partial_results() const noexcept {
    return parts > 0 ? parts : 1;
  }
  /// 32-bit words of a query head's partial result: the elements, then the two statistics.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int words() const noexcept {
    return partials == dtype::f32 ? head_dim + 2 : head_dim / 2 + 1;
  }
};

/// The most query heads per key head: as many as a tensor core instruction has rows.
inline constexpr int most_heads_of_group = 16;

/// Memory that the kernels of a rank need, in packets of 16 bytes and words of 4 bytes.
struct attention_room {
  std::size_t inbox = 0;   ///< packets: two sets, a row for each query head and rank
  std::size_t parts = 0;   ///< packets: partials of two items per block
  std::size_t outbox = 0;  ///< packets: two sets of the rank's own rows
  std::size_t rows = 0;    ///< words: the rows of all ranks, or of all parts

  /// `receives`: packets arrive from other ranks; `follows`: a second kernel forwards them.
  [[nodiscard]] static constexpr attention_room of(const attention_shape& shape, int all_ranks,
                                                   int all_blocks, bool receives,
                                                   bool follows) noexcept {
    const auto rows = static_cast<std::size_t>(shape.rows());
    const auto ranks = static_cast<std::size_t>(all_ranks);
    const auto row_packets = static_cast<std::size_t>(packets_of_row(shape.head_dim));
    const auto part = most_heads_of_group * (static_cast<std::size_t>(shape.head_dim) / 2 + 1);
    return {receives || follows ? 2 * rows * ranks * row_packets : 1,
            2 * static_cast<std::size_t>(all_blocks) * part, follows ? 2 * rows * row_packets : 0,
            rows * ranks * static_cast<std::size_t>(shape.partial_results() * shape.words())};
  }
};

/// The caller's memory, on the GPU. Strides are in elements.
struct attention_operands {
  const void* queries = nullptr;  ///< [batch * heads, head_dim]
  const void* keys = nullptr;
  const void* values = nullptr;
  void* out = nullptr;
  std::int64_t queries_stride = 0;
  std::int64_t keys_stride = 0;
  std::int64_t values_stride = 0;
  std::int64_t out_stride = 0;
  const std::int32_t* lengths = nullptr;
  const std::int32_t* page_table = nullptr;
};

/// The most ranks, or parts, whose partial results a warp combines.
inline constexpr int most_attention_ranks = 8;
/// Whether kernels exist for a head width.
[[nodiscard]] constexpr bool has_kernel_for(std::int64_t head_dim) noexcept {
  return head_dim == 64 || head_dim == 128 || head_dim == 256;
}

}  // namespace untax::gpu
