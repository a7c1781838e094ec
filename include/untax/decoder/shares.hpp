#pragma once

#include <cstdint>

#include <untax/decoder/config.hpp>

namespace untax {

/// Numbers from `begin` to `end` - 1.
struct index_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// The part of each weight matrix that a rank holds, in rows and columns of the matrices [n, k]
/// that nn.Linear stores.
///
/// * `heads`: rows of the projection of queries, and columns of the output's, `head_dim` each.
/// * `kv_heads`: rows of the projections of keys and values. If there are fewer of these heads than
///   ranks, several ranks hold the same head, each with some of its queries' heads.
/// * `intermediate`: rows of gate and up, and columns of down. All but the last rank's end at a
///   multiple of 8, so that rows begin at 16 bytes.
/// * `vocabulary`: rows of the embedding and of the head, as many at each rank and a multiple of 8;
///   the last ranks have the rest.
///
/// Everything else, norms and biases that are added to a sum over ranks, every rank holds whole.
struct weight_shares {
  index_range heads;
  index_range kv_heads;
  index_range intermediate;
  index_range vocabulary;
};

/// The shares of rank `rank` of `ranks`. Throws `invalid_argument` where a rank would be without
/// heads, columns of the MLP or tokens.
[[nodiscard]] weight_shares shares_of(const decoder_config& config, int rank, int ranks);

}  // namespace untax
