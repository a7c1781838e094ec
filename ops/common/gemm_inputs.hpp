#pragma once

#include <cstdint>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>

#include "ops/common/operator_entry.hpp"
#include "ops/common/random_matrix.hpp"

namespace untax {

/// The whole A of a problem, of which each rank has its part.
[[nodiscard]] random_matrix whole_a(std::uint64_t seed) noexcept;
/// The whole B of a rank that has the part `share`.
[[nodiscard]] random_matrix whole_b(std::uint64_t seed, const gemm_share& share) noexcept;

/// Fills a rank's part of the inputs of a problem with N(0, 1), the same for the same seed at any
/// rank. Asynchronous on a stream of the current device.
void fill_device_inputs(const gemm_share& share, std::uint64_t seed, const matrix& a,
                        const matrix& weights, stream_ref stream);

}  // namespace untax
