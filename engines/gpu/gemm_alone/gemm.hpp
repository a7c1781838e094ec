#pragma once

#include <memory>

#include <untax/core/stream_ref.hpp>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// C = A * B^T on one GPU of Hopper: bf16 or fp16 elements, fp32 sums, the same bits every time.
///
/// TMA takes rows that begin at multiples of 16 bytes. Where n or k is no multiple of 8, matrices
/// are copied to rows that do, and back: that is slower by the time of the copies.
///
/// Everything that is allocated is allocated by the constructor. Runs of one object have to follow
/// each other (they share scratch memory), those of its copies, too; other objects are independent.
class gemm {
 public:
  /// By the plan that the model likes best, on the current device. Throws `unsupported` if that is
  /// no Hopper GPU, `out_of_memory`, and what `gemm_plans` throws.
  explicit gemm(const gemm_shape& shape);
  /// By a given plan, for measurements: one of the shape, with n and k rounded up to multiples
  /// of 8.
  gemm(const gemm_shape& shape, const gemm_plan& plan);

  /// Starts the kernel. Matrices lie in memory of this device, at multiples of 16 bytes. May be
  /// captured into a graph.
  void run(const void* a, const void* b, void* c, stream_ref stream) const;

  [[nodiscard]] const gemm_plan& plan() const noexcept;

 private:
  class launcher;
  std::shared_ptr<const launcher> launcher_;
};

}  // namespace untax::gpu
