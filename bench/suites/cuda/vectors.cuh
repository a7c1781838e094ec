#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <cuda_runtime.h>

#include <untax/core/types.hpp>

namespace untax::bench {

/// The driver's name of the current device. Throws `unsupported` with the name of the suite if
/// there is none.
[[nodiscard]] std::string device_name(std::string_view suite);

/// Device memory of one GPU, freed at the end.
class device_buffer {
 public:
  /// Allocates on the current device. Throws `internal`.
  explicit device_buffer(std::size_t bytes);
  device_buffer(device_buffer&& other) noexcept;
  device_buffer& operator=(device_buffer&& other) noexcept;
  ~device_buffer();

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
};

/// Small whole numbers that depend on `seed` and on the position: their sums over a few ranks are
/// exact in every type and every order.
void fill_exact(void* to, std::int64_t count, dtype type, std::uint32_t seed, cudaStream_t stream);

/// Adds the number of 2-byte words in which two regions differ to `*differences`.
void count_differences(const void* a, const void* b, std::size_t bytes,
                       unsigned long long* differences, cudaStream_t stream);

}  // namespace untax::bench
