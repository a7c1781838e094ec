#pragma once

#include <cstdint>

#include <untax/core/activation.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>

namespace untax::gpu {

/// The rows of a product, and the function that makes results of them.
struct activated_rows {
  std::int64_t rows = 0;
  std::int64_t n = 0;  ///< columns of the result, a multiple of 8
  activation_function function = activation_function::none;
  dtype type = dtype::bf16;  ///< bf16 or fp16
  /// Programmatic dependent launch; not where ranks share a GPU.
  bool starts_early = true;
};

/// Loads the kernels on the current device.
void load_activation_kernels();

/// out [rows, n] = function(product + bias), in fp32, rounded to nearest. `product` is [rows, n],
/// or [rows, 2 n] if the function is gated, with columns of gate and up in groups of `gate_group`;
/// it may be `out` if the function is not gated. `bias` has an element for each column of the
/// product, and may be null. No gaps between rows; everything begins at multiples of 16 bytes.
/// Asynchronous; can be captured.
void activate(const activated_rows& how, const void* product, const void* bias, void* out,
              stream_ref stream);

}  // namespace untax::gpu
