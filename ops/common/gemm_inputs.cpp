#include "ops/common/gemm_inputs.hpp"

#include "engines/gpu/matrix/matrix.hpp"

namespace untax {

random_matrix whole_a(std::uint64_t seed) noexcept { return {seed * 2}; }
random_matrix whole_b(std::uint64_t seed, const gemm_share& share) noexcept {
  return {seed * 2 + 1 + (share.b_of_rank << 40U)};
}

void fill_device_inputs(const gemm_share& share, std::uint64_t seed, const matrix& a,
                        const matrix& weights, stream_ref stream) {
  gpu::fill_normal(a, whole_a(seed).seed, share.a_rows, share.a_cols, stream);
  gpu::fill_normal(weights, whole_b(seed, share).seed, share.b_rows, share.b_cols, stream);
}

}  // namespace untax
