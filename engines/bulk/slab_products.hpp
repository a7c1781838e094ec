#pragma once

#include <cstdint>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/tile/shard.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"

namespace untax::bulk {

/// C = sum over slabs of A_s x B_s^T by cuBLASLt. The slabs [m, k_s] lie one behind the other, each
/// where it would if all before it were full; B_s are columns of B. Each slab has a product, and
/// all but the first add to the sum of the earlier ones. That sum is in fp32, in memory of this
/// object, and rounded to C once. If the products were added to a C of 16 bits, each would round,
/// and an element that is small relative to the intermediate sums would be wrong by several times
/// its rounding.
class slab_products {
 public:
  /// `whole` is the product of all slabs, whose k is sharded by `shards`; rows of its C have no
  /// gaps. Measures the algorithms of each product. Throws the errors of `library_gemm`, and
  /// `out_of_memory` without room for m x n numbers of fp32.
  slab_products(const library_product& whole, const sharding& shards);

  /// As `library_gemm::vary_rows`, for all products.
  void vary_rows();
  void set_rows(std::int64_t m);
  /// Asynchronous; can be captured.
  void run(const void* slabs, const void* weights, void* c, stream_ref stream) const;

 private:
  library_product whole_;  ///< with m of the next run
  sharding shards_;
  std::int64_t element_bytes_;
  std::int64_t slab_ = 0;  ///< bytes from a slab to the next
  scratch sum_;
  /// The full slabs except the first share a product. A shorter slab has its own.
  std::vector<library_gemm> kinds_;
};

}  // namespace untax::bulk
