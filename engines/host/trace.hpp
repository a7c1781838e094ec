#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/flow/fault_tap.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/world.hpp>

namespace untax::host {

/// The record of one engine: a ring for each worker, and one for the calling thread.
class engine_trace final : public trace_source {
 public:
  /// Null unless a trace is being recorded. If one is, the call is collective: the ranks agree on a
  /// number for the operator. Throws the errors of making an operator. When the last owner releases
  /// the record, the session keeps its events.
  [[nodiscard]] static std::shared_ptr<engine_trace> open(world& w, const std::string& name,
                                                          std::vector<trace_kernel> kernels);
  engine_trace(world& w, const std::string& name, std::vector<trace_kernel> kernels);

  [[nodiscard]] trace_ring* caller() noexcept { return &caller_; }
  /// The first call for a worker makes its ring; so call it before workers run.
  [[nodiscard]] trace_ring* worker(std::size_t index);
  [[nodiscard]] traced_operator collect() const override;

 private:
  traced_operator what_;
  std::size_t room_;
  owned_symmetric<std::uint64_t> ids_;
  trace_ring caller_;
  std::vector<std::unique_ptr<trace_ring>> workers_;
};

/// Records a worker's wait while it lives. Does nothing without a ring or if no wait is needed.
class wait_note {
 public:
  wait_note(trace_ring* ring, channel_verb verb, const room& target) noexcept;
  wait_note(const wait_note&) = delete;
  wait_note& operator=(const wait_note&) = delete;
  ~wait_note();

 private:
  trace_ring* ring_;
  trace_mark end_;
};

/// Records a signal. Call it before the signal is raised.
void note_signal(trace_ring& ring, channel_verb verb, const room& target, int reader) noexcept;

}  // namespace untax::host
