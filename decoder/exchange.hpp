#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/decoder/options.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/communicator.hpp"

// What ranks of a decoder send each other by collectives: those of untax or, where the options say
// bulk_library, on GPUs those of NCCL.

namespace untax {

/// A gather of the ranks' elements, equally many of each.
class rank_gather {
 public:
  /// Collective. A run has `shard` elements of each rank or, if they vary, up to as many.
  rank_gather(world& w, const decoder_options& options, std::int64_t shard, dtype type,
              bool varies = false);

  /// Collective. `out`: [ranks, shard].
  void run(const void* in, void* out, std::int64_t shard, stream_ref stream);

 private:
  world* world_;
  dtype type_;
  std::shared_ptr<bulk::communicator> library_;
  std::optional<all_gather> own_;  ///< without the library
};

/// A sum of rows over the ranks, in the type of the rows, which no operator takes along.
class rank_sum {
 public:
  /// Collective. A run has up to `sums.rows` rows; `sums` is where they are added, dense.
  rank_sum(world& w, const decoder_options& options, const matrix& sums);

  /// Collective. Returns the sums, the same at all ranks.
  const_matrix run(const const_matrix& rows, stream_ref stream);

 private:
  world* world_;
  matrix sums_;
  std::shared_ptr<bulk::communicator> library_;
  std::optional<all_reduce> own_;  ///< without the library
};

}  // namespace untax
