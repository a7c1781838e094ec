#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_products.hpp"

namespace untax::bulk {

/// C = A x B^T by cuBLASLt, after columns of A were gathered as slabs [m, k_s]. A slab begins where
/// it would begin if all slabs before it were full. Either the slabs are joined side by side and
/// multiplied at once, or each slab is multiplied and added (`slab_products`). In both cases C is
/// rounded once.
class gathered_product {
 public:
  /// `whole` is the product, whose k is sharded by `shards`. Measures both forms, and makes all
  /// ranks use the quicker one, or joined slabs if a rank has no room for sums. `slabs` is memory
  /// of all slabs, which is overwritten. Collective. Throws the errors of `library_gemm`.
  gathered_product(world& w, const library_product& whole, const sharding& shards, void* slabs);

  /// As `library_gemm::vary_rows`.
  void vary_rows();
  void set_rows(std::int64_t m);
  /// Asynchronous; can be captured.
  void run(const void* slabs, const void* weights, void* c, stream_ref stream) const;
  /// The chosen form, and the times of both.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void join_and_multiply(const void* slabs, const void* weights, void* c, stream_ref stream) const;
  void choose(world& w, std::optional<slab_products> added, void* slabs);

  library_product whole_;  ///< with m of the next run
  sharding shards_;
  library_gemm at_once_;
  scratch joined_;
  std::optional<slab_products> added_;
  std::string text_;
};

}  // namespace untax::bulk
