// Products of slabs of k by cuBLASLt, which add: their sum is rounded once.
#include <cstdint>

#include "engines/bulk/slab_products.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "gpus.hpp"
#include "ops/common/deviation.hpp"
#include "rows_of_heads.hpp"

namespace {

using namespace gpu_test;
using untax::bf16;
using untax::dtype;
using untax::matrix;
using untax::range;
using untax::sharding;

constexpr std::int64_t m = 256;
constexpr std::int64_t n = 512;
constexpr std::int64_t k = 2048;

/// If C were rounded behind every slab, the worst of these elements would be wrong by two to five
/// times the bound.
TEST(gpu_slab_products, round_their_sum_once) {
  NEEDS_GPUS(1);
  if (!untax::bulk::blas().there) GTEST_SKIP() << untax::bulk::blas().text;
  const stream on;
  const on_device<bf16> a(m * k);
  const on_device<bf16> weights(n * k);
  const on_device<bf16> c(m * n);
  const on_device<float> right(m * n);
  const on_device<std::uint64_t> scratch(64);
  untax::gpu::fill_normal({a.data(), dtype::bf16, m, k}, 1, {0, m}, {0, k}, on.get());
  untax::gpu::fill_normal({weights.data(), dtype::bf16, n, k}, 2, {0, n}, {0, k}, on.get());
  untax::gpu::multiply_plainly({a.data(), dtype::bf16, m, k}, {weights.data(), dtype::bf16, n, k},
                               {right.data(), dtype::f32, m, n}, on.get());
  for (const int parts : {2, 3, 8}) {
    const sharding shards{k, parts, 8};
    const on_device<bf16> slabs(m * shards.full() * parts);
    for (int s = 0; s < parts; ++s) {
      const range own = shards.of(s);
      untax::gpu::fill_normal({slabs.data() + s * m * shards.full(), dtype::bf16, m, own.size}, 1,
                              {0, m}, own, on.get());
    }
    untax::bulk::slab_products products({m, n, k, dtype::bf16, dtype::bf16}, shards);
    products.run(slabs.data(), weights.data(), c.data(), on.get());
    untax::deviation off(4e-3);
    off.add(untax::gpu::compare({c.data(), dtype::bf16, m, n}, {right.data(), dtype::f32, m, n},
                                untax::roundoff_of(dtype::bf16) + untax::addition_share(k), k,
                                scratch.data(), on.get()),
            m * n, k);
    EXPECT_LE(off.relative_error(), 4e-3) << parts << " slabs";
    EXPECT_GT(off.relative_error(), 0) << parts << " slabs";
  }
}

}  // namespace
