#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <untax/core/activation.hpp>
#include <untax/core/stream_ref.hpp>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/rooms/partial_sums.hpp"

namespace untax::gpu {

struct kernel_start;

/// Where a product of gates goes.
struct gated_product {
  activation_function function = activation_function::swiglu;
  const void* bias = nullptr;
  void* out = nullptr;
};

/// C = A * B^T on one Hopper GPU: bf16 or fp16 elements, fp32 sums, the same bits every time.
///
/// TMA requires rows that begin at multiples of 16 bytes. If n or k is no multiple of 8, matrices
/// are copied to such rows, and back. This takes the time of the copies in addition.
///
/// The constructor allocates all memory. Runs of one object and of its copies have to follow each
/// other, since they share scratch memory; other objects are independent.
class gemm {
 public:
  /// Uses the plan that `plans_by_model` ranks first, on the current device. Throws `unsupported`
  /// if that is no Hopper GPU, `out_of_memory`, and what `gemm_plans` throws.
  explicit gemm(const gemm_shape& shape);
  /// Uses a given plan, for measurements: a plan of the shape with n and k rounded up to multiples
  /// of 8.
  gemm(const gemm_shape& shape, const gemm_plan& plan);
  /// Uses a plan for any number of rows up to the shape's; `set_rows` sets the number, which is the
  /// shape's at first. Blocks leave partial sums in `partials`, of `partials_of_rows(plan)` bytes
  /// or more, null for none, which others may use in turn. n and k have to be multiples of 8.
  /// `start`: see launcher.hpp.
  gemm(const gemm_shape& shape, const gemm_plan& plan, std::shared_ptr<const partial_sums> partials,
       const kernel_start& start);

  /// Bytes of partial sums of runs with any number of rows.
  [[nodiscard]] static std::size_t partials_of_rows(const gemm_shape& shape, const gemm_plan& plan);
  /// Sets the rows of the next runs, of copies too. Launches nothing.
  void set_rows(std::int64_t rows);

  /// Starts the kernel. The matrices lie in memory of this device, at multiples of 16 bytes. The
  /// run may be captured into a graph.
  void run(const void* a, const void* b, void* c, stream_ref stream) const;
  /// Whether the kernel multiplies gates: with few rows.
  [[nodiscard]] bool has_gates() const noexcept;
  /// Starts the kernel for a B whose rows are those of gate and up, in groups of `gate_group` in
  /// turn: out = function(gate + bias) * (up + bias), [m, n / 2]. `bias` [n] may be null.
  void run_gated(const void* a, const void* b, const gated_product& gates, stream_ref stream) const;

  [[nodiscard]] const gemm_plan& plan() const noexcept;

 private:
  class launcher;
  std::shared_ptr<launcher> launcher_;
};

}  // namespace untax::gpu
