#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/pattern.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/launch/common_end.hpp"

namespace untax {

/// The caller's matrices of a run; if peers write C, the Cs of neighbouring ranks lie `between`
/// bytes apart.
struct gemm_operands {
  const void* a = nullptr;
  const void* weights = nullptr;
  const void* c = nullptr;
  std::int64_t between = 0;

  bool operator==(const gemm_operands&) const = default;
};

/// A GEMM operator in one pattern, in a world of GPUs, at one rank: the operator's class runs it.
/// It is made for one problem. All ranks construct it together, and destroy it together. It
/// allocates, loads and measures only when it is constructed.
class device_operator {
 public:
  /// `w` has to outlive it.
  explicit device_operator(world& w) : end_(w) {}
  device_operator(const device_operator&) = delete;
  device_operator& operator=(const device_operator&) = delete;
  /// Returns when all ranks have ended their operators, with all kernels and memory. Leaves memory
  /// of a stopped world alone.
  virtual ~device_operator() = default;

  /// Runs one epoch: only launches, and may be captured. The class has checked the arguments: they
  /// lie in memory that the GPU of the rank reaches, at multiples of 16 bytes, row after row
  /// without gaps (null where there are no elements). The GPU is the current device, `stream` is
  /// never empty.
  virtual void run(const void* a, const void* weights, void* c, stream_ref stream) = 0;

  /// Sets the number of rows of the next runs, at least 1. Only for an operator made for
  /// `varying_rows`, up to the rows that it was made for.
  virtual void set_rows(std::int64_t /*rows*/) {}
  /// Called when all graphs that had a run of this operator, by any of its plans, are gone. Runs
  /// outside of graphs then need not ask which plan ran last.
  virtual void forget_captures() noexcept {}

  /// The pattern of the operator; never `automatic`.
  [[nodiscard]] virtual pattern how() const = 0;
  /// A sentence for `explain()`: the plan and, where untax chose it, the alternatives.
  [[nodiscard]] virtual std::string text() const = 0;

 private:
  gpu::common_end end_;
};

/// The operator for the numbers of rows above those of the one before it. It was planned for any
/// number of rows up to at least `rows`.
struct operator_up_to {
  std::int64_t rows = 0;
  std::shared_ptr<device_operator> op;
};

}  // namespace untax
