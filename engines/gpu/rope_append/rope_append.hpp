#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>

namespace untax::gpu {

inline constexpr int rope_elements = 8;                        ///< of a thread: 16 bytes
inline constexpr int most_rope_elements = 32 * rope_elements;  ///< of a head, which one warp
                                                               ///< handles

/// Kernel arguments. Strides are in elements, multiples of 8, as is the length of a head.
struct rope_arguments {
  dtype type = dtype::bf16;
  int tokens = 0;  ///< times all heads less than 2^30
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 128;
  int rotated = 128;  ///< a multiple of 16
  int batch = 1;
  int keys = 1;
  int page_size = 0;
  int pages = 0;
  int positions = 1;
  bool interleaved = false;
  bool constant_weights = false;  ///< weights may be read before the kernel ahead has ended
  float norm_offset = 0;
  float epsilon = 0;

  const void* qkv = nullptr;
  const void* bias = nullptr;    ///< null: none
  const void* q_norm = nullptr;  ///< null: no norm
  const void* k_norm = nullptr;
  const float* rotations = nullptr;
  const std::int32_t* position = nullptr;
  const std::int32_t* sequence = nullptr;    ///< null: token t belongs to sequence t
  const std::int32_t* page_table = nullptr;  ///< null: no pages
  void* key_cache = nullptr;
  void* value_cache = nullptr;
  void* q = nullptr;
  std::int64_t qkv_stride = 0;
  std::int64_t keys_stride = 0;
  std::int64_t values_stride = 0;
  std::int64_t q_stride = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int all_heads() const noexcept {
    return heads + 2 * kv_heads;
  }
};

/// Loads the kernel for heads of this type and length, so that a run need not. Throws `internal`.
void load_rope_append(const rope_arguments& a);

/// Launches the kernel. With `early` it may start before the kernel ahead has ended. Throws
/// `internal`.
void start_rope_append(const rope_arguments& a, bool early, stream_ref stream);

}  // namespace untax::gpu
