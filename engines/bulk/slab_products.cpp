#include "engines/bulk/slab_products.hpp"

#include <cstddef>

#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bulk {

slab_products::slab_products(const library_product& whole, const sharding& shards)
    : whole_(whole),
      shards_(shards),
      element_bytes_(static_cast<std::int64_t>(size_of(whole.type))),
      sum_(static_cast<std::size_t>(whole.m * whole.n) * sizeof(float)) {
  set_rows(whole.m);
  for (int s = 0; s < shards.parts && !shards.of(s).empty(); ++s) {
    library_product product = whole;
    product.k = shards.of(s).size;
    product.b_stride = whole.k;
    product.result = dtype::f32;
    product.adds = s > 0;
    if (s > 1 && product.k == shards.full()) continue;
    kinds_.emplace_back(product).settle();
  }
}

void slab_products::vary_rows() {
  for (library_gemm& kind : kinds_) kind.vary_rows();
}

void slab_products::set_rows(std::int64_t m) {
  whole_.m = m;
  slab_ = m * shards_.full() * element_bytes_;
  for (library_gemm& kind : kinds_) kind.set_rows(m);
}

void slab_products::run(const void* slabs, const void* weights, void* c, stream_ref stream) const {
  for (int s = 0; s < shards_.parts && !shards_.of(s).empty(); ++s) {
    const bool full = shards_.of(s).size == shards_.full();
    const library_gemm& kind = s == 0 ? kinds_.front() : full ? kinds_[1] : kinds_.back();
    kind.run(static_cast<const std::byte*>(slabs) + s * slab_,
             static_cast<const std::byte*>(weights) + shards_.of(s).begin * element_bytes_,
             sum_.data(), stream);
  }
  gpu::round_to({c, whole_.result, whole_.m, whole_.n},
                {sum_.data(), dtype::f32, whole_.m, whole_.n}, stream);
}

}  // namespace untax::bulk
