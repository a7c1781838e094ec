#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/trace/decode.hpp"
#include "engines/gpu/trace/launch_trace.hpp"

namespace untax::gpu {

/// What is recorded of an operator on GPUs at one rank: a ring for each warp of its kernels that
/// has a role, in memory of the rank's GPU, and when it was called.
class operator_trace final : public trace_source {
 public:
  /// Null unless a trace is being recorded. Collective, where it is. Throws `unsupported`, where it
  /// is, in a build whose kernels record nothing, and what making an operator throws. When the last
  /// owner lets go, the session keeps what was recorded; no kernel may run any more.
  [[nodiscard]] static std::shared_ptr<operator_trace> open(world& w, const std::string& name);
  /// The same of a kernel that has no world, on the current device: rank 0 of one.
  [[nodiscard]] static std::shared_ptr<operator_trace> open_alone(const std::string& name);
  operator_trace(traced_operator what, int device);

  /// Memory of the operator: of words, which may be counters, it remembers where they lie.
  void know(const symmetric<std::uint64_t>& counters);
  void know(const symmetric<std::byte>& /*others*/) noexcept {}
  /// What launches are given. `group_threads`: of a block of the kernels that have most of its
  /// warps; others have another number.
  [[nodiscard]] launch_trace launches(int group_threads);
  /// A run begins; `captured`: nobody knows when.
  void called(bool captured);

  [[nodiscard]] traced_operator collect() const override;

 private:
  static std::shared_ptr<operator_trace> added(traced_operator what, int device);
  void allocate();
  [[nodiscard]] kernel_record copied() const;

  traced_operator what_;
  int device_;
  std::vector<counter_range> counters_;
  scratch_memory memory_;
  ring_table rings_;
  mutable std::mutex mutex_;  // of the next two
  std::vector<std::uint64_t> calls_;
  bool captured_ = false;
};

/// For tests: while it lives, what this thread makes that is recorded has this tap, which lives as
/// long as that.
class signal_taps {
 public:
  explicit signal_taps(signal_tap& tap);
  signal_taps(const signal_taps&) = delete;
  signal_taps& operator=(const signal_taps&) = delete;
  ~signal_taps();
};

/// What is recorded of a kernel that is all of a run and takes part in no world: of a GEMM of one
/// GPU. Nothing in a build whose kernels record nothing, and unless a trace is being recorded when
/// it is made. It ends when the GPU has ended what it runs.
class lone_trace {
 public:
  /// `threads`: of a block.
  lone_trace(const std::string& name, int threads);

  /// What the launch of a run is given.
  [[nodiscard]] launch_trace begin_run(cudaStream_t stream) const;

 private:
  std::shared_ptr<operator_trace> trace_;
  launch_trace given_;
};

}  // namespace untax::gpu
