#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/sm90/gemm/matrix_at.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// The caller's matrices of a run; `between` bytes lie between C of neighbouring ranks.
struct scatter_operands {
  const void* a = nullptr;
  const void* weights = nullptr;
  const void* c = nullptr;
  std::int64_t between = 0;
};

/// What the copy engines of a rank's multiprocessors read and write in a scatter: the matrices that
/// tensor maps describe.
struct scatter_maps {
  /// Of a kernel that multiplies some rows of A.
  struct band {
    sm90::matrix_at a;
    sm90::matrix_at c;
  };
  std::vector<band> bands;
  sm90::matrix_at b;
  std::vector<sm90::matrix_at> copies;  ///< of C: the own one, and those by hop that tiles go to
  /// By hop, the own one first: C as movers read and write flagged tiles.
  std::vector<sm90::boxes_at> boxes;
};

[[nodiscard]] scatter_maps maps_of(const gemm_all_scatter_problem& problem,
                                   const scatter_plan& plan, const gemm_all_scatter_protocol& how,
                                   const scatter_operands& operands);

/// The rows of A that the kernel number `i` multiplies.
[[nodiscard]] range rows_of_band(const gemm_all_scatter_problem& problem, const scatter_plan& plan,
                                 std::int64_t i);

/// What a copy engine sends of a band to a peer: rows of so many bytes, `stride` apart at both
/// ends.
struct sent_band {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t stride = 0;
  std::size_t bytes = 0;
  std::size_t rows = 0;
};
[[nodiscard]] sent_band band_for(const gemm_all_scatter_problem& problem, const scatter_plan& plan,
                                 const gemm_all_scatter_protocol& how, std::byte* c,
                                 std::int64_t between, std::int64_t band, int hop);

}  // namespace untax
