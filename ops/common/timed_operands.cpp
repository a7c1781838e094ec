#include "ops/common/timed_operands.hpp"

#include <algorithm>

#include <untax/tile/shard.hpp>

#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/gemm_inputs.hpp"
#include "ops/common/own_stream.hpp"

namespace untax {
namespace {

constexpr std::size_t rotated_bytes = std::size_t{200} << 20U;
constexpr std::size_t most_places = 8;

std::size_t memory_for(range rows, range cols, dtype type) {
  return round_up<std::size_t>(static_cast<std::size_t>(rows.size * cols.size) * size_of(type),
                               512);
}

}  // namespace

timed_operands::timed_operands(const gemm_share& share, const gemm_problem& problem,
                               std::uint64_t seed, stream_ref stream)
    : b_bytes_(memory_for(share.b_rows, share.b_cols, problem.type)),
      places_(static_cast<int>(std::clamp<std::size_t>(
          rotated_bytes / std::max<std::size_t>(b_bytes_, 1) + 1, 1, most_places))),
      a_memory_(memory_for(share.a_rows, share.a_cols, problem.type)),
      b_memory_(b_bytes_ * static_cast<std::size_t>(places_)),
      c_memory_(memory_for(share.c_rows, share.c_cols, problem.type)),
      a_(a_memory_.data(), problem.type, share.a_rows.size, share.a_cols.size),
      c_(c_memory_.data(), problem.type, share.c_rows.size, share.c_cols.size) {
  gpu::load_matrix_kernels();
  b_ = {b_memory_.data(), problem.type, share.b_rows.size, share.b_cols.size};
  for (int i = places_ - 1; i >= 0; --i)
    fill_device_inputs(share, seed + static_cast<std::uint64_t>(i), a_, place(i), stream);
  wait_for(stream, "making inputs failed");
}

matrix timed_operands::place(int i) const {
  return {b_memory_.data(b_bytes_ * static_cast<std::size_t>(i % places_)), b_.type, b_.rows,
          b_.cols};
}

const_matrix timed_operands::weights(int i) const { return as_const(place(i)); }

}  // namespace untax
