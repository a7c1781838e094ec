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

/// The recording of a GPU operator at one rank: a ring for each warp that has a role, in memory of
/// the rank's GPU, and the times of its calls.
class operator_trace final : public trace_source {
 public:
  /// Null unless a trace is being recorded; otherwise collective. Throws `unsupported` in a build
  /// whose kernels record nothing, and the errors of making an operator. When the last owner
  /// releases the object, the session keeps the recorded data; no kernel may run any more by then.
  [[nodiscard]] static std::shared_ptr<operator_trace> open(world& w, const std::string& name);
  /// As `open`, for a kernel without a world, on the current device: it is rank 0 of one rank.
  [[nodiscard]] static std::shared_ptr<operator_trace> open_alone(const std::string& name);
  operator_trace(traced_operator what, int device);

  /// Adds memory of the operator to the record. Words may be counters, so the record keeps their
  /// addresses.
  void know(const symmetric<std::uint64_t>& counters);
  void know(const symmetric<std::byte>& /*others*/) noexcept {}
  /// The arguments for launches. `group_threads`: threads per block of the kernels with most of the
  /// operator's warps; other kernels have a different number.
  [[nodiscard]] launch_trace launches(int group_threads);
  /// A run is called. `captured`: in a graph, so the times of its runs are unknown.
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
  mutable std::mutex mutex_;  // guards the next two
  std::vector<std::uint64_t> calls_;
  bool captured_ = false;
};

/// A scope for tests: while it exists, everything that this thread makes and that is recorded uses
/// this tap, which has to outlive all of it.
class signal_taps {
 public:
  explicit signal_taps(signal_tap& tap);
  signal_taps(const signal_taps&) = delete;
  signal_taps& operator=(const signal_taps&) = delete;
  ~signal_taps();
};

/// The recording of a kernel that is a whole run and belongs to no world, such as a GEMM on one
/// GPU. It is empty in a build whose kernels record nothing, and if no trace is being recorded when
/// it is made. Its end synchronises the device.
class lone_trace {
 public:
  /// `threads`: per block.
  lone_trace(const std::string& name, int threads);

  /// Notes the call of a run, and returns the arguments for its launch.
  [[nodiscard]] launch_trace begin_run(cudaStream_t stream) const;

 private:
  std::shared_ptr<operator_trace> trace_;
  launch_trace given_;
};

}  // namespace untax::gpu
