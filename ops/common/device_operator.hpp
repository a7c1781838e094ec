#pragma once

#include <cstdint>
#include <string>

#include <untax/core/pattern.hpp>
#include <untax/core/stream_ref.hpp>

namespace untax {

/// The caller's matrices of a run; where peers write C, those of neighbouring ranks lie `between`
/// bytes apart.
struct gemm_operands {
  const void* a = nullptr;
  const void* weights = nullptr;
  const void* c = nullptr;
  std::int64_t between = 0;

  bool operator==(const gemm_operands&) const = default;
};

/// One way to carry a GEMM operator out in a world of GPUs, at one rank: what the operator's class
/// runs. It is made for one problem, and by all ranks together; so is it destroyed. Everything that
/// it allocates, loads or measures it does when it is made.
class device_operator {
 public:
  device_operator() = default;
  device_operator(const device_operator&) = delete;
  device_operator& operator=(const device_operator&) = delete;
  /// Waits until what it has started has ended, at all ranks; leaves memory of a stopped world
  /// alone.
  virtual ~device_operator() = default;

  /// One epoch: only launches, and may be captured. The class has looked at the arguments: they lie
  /// in memory that the GPU of the rank reaches, at multiples of 16 bytes, row after row without
  /// gaps (null where there are no elements). The GPU is the current device, `stream` is never
  /// empty.
  virtual void run(const void* a, const void* weights, void* c, stream_ref stream) = 0;

  /// How many rows of the problem runs have from here on, at least 1. Only of one that was made for
  /// `varying_rows`, and up to what it was made for.
  virtual void set_rows(std::int64_t /*rows*/) {}

  /// What it is; never `automatic`.
  [[nodiscard]] virtual pattern how() const = 0;
  /// What it does and, where untax chose it, what was considered: a sentence for `explain()`.
  [[nodiscard]] virtual std::string text() const = 0;
};

}  // namespace untax
