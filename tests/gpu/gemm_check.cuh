#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include <untax/core/types.hpp>

namespace gpu_test {

struct gemm_report;

/// Matrices for C[m, n] = A[m, k] * B[n, k]^T on the current device, and what C should be.
class gemm_data {
 public:
  gemm_data(std::int64_t m, std::int64_t n, std::int64_t k, untax::dtype type);
  gemm_data(const gemm_data&) = delete;
  gemm_data& operator=(const gemm_data&) = delete;
  ~gemm_data();

  [[nodiscard]] const void* a() const { return a_; }
  [[nodiscard]] const void* b() const { return b_; }
  [[nodiscard]] void* c() const { return c_; }

  /// Fills A and B with N(0, 1), and computes what C should be, in fp64.
  void fill(std::uint32_t seed, cudaStream_t stream);
  /// Fills C, and what lies around it, with NaN.
  void poison(cudaStream_t stream);
  /// Empty if C is right and nothing around it was written; otherwise what is wrong, and where.
  [[nodiscard]] std::string findings(cudaStream_t stream);

 private:
  std::int64_t m_;
  std::int64_t n_;
  std::int64_t k_;
  untax::dtype type_;
  void* a_ = nullptr;
  void* b_ = nullptr;
  std::uint16_t* around_ = nullptr;  // C with a margin before it and behind it
  std::uint16_t* c_ = nullptr;
  float* expected_ = nullptr;
  gemm_report* report_ = nullptr;
};

}  // namespace gpu_test
