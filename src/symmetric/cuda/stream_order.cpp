#include "src/symmetric/stream_order.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax {
namespace {

#if CUDART_VERSION >= 13000
constexpr auto capture_info = &cudaStreamGetCaptureInfo;
constexpr auto add_edges = &cudaGraphAddDependencies;
constexpr auto remove_edges = &cudaGraphRemoveDependencies;
constexpr auto update_frontier = &cudaStreamUpdateCaptureDependencies;
#else
constexpr auto capture_info = &cudaStreamGetCaptureInfo_v3;
constexpr auto add_edges = &cudaGraphAddDependencies_v2;
constexpr auto remove_edges = &cudaGraphRemoveDependencies_v2;
constexpr auto update_frontier = &cudaStreamUpdateCaptureDependencies_v2;
#endif

constexpr auto problem = "runs of an operator cannot be kept in order";

/// The capture of a stream.
struct stream_capture {
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;  ///< null: the stream is not captured
  /// The nodes on which the stream's next node depends; valid until the next call of CUDA.
  const cudaGraphNode_t* frontier = nullptr;
  std::size_t frontier_size = 0;
};

stream_capture capture_of(cudaStream_t stream) {
  // The default stream is never captured, and must not be queried while a blocking stream is
  // captured.
  if (stream == cudaStreamLegacy) return {};
  stream_capture capture;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphEdgeData* edges = nullptr;
  gpu::require(capture_info(stream, &status, &capture.id, &capture.graph, &capture.frontier, &edges,
                            &capture.frontier_size),
               "cannot read whether a stream is captured");
  if (status == cudaStreamCaptureStatusInvalidated)
    gpu::require(cudaErrorStreamCaptureInvalidated, "a run cannot be captured");
  return status == cudaStreamCaptureStatusActive ? capture : stream_capture{};
}

unsigned long long id_of(cudaStream_t stream) {
  unsigned long long id = 0;
  gpu::require(cudaStreamGetId(stream, &id), problem);
  return id;
}

using nodes = std::vector<cudaGraphNode_t>;

nodes without(nodes some, const nodes& others) {
  std::erase_if(some, [&](cudaGraphNode_t node) { return std::ranges::count(others, node) > 0; });
  return some;
}

/// A capture that contains runs.
struct captured_runs {
  unsigned long long id = 0;
  cudaStream_t stream = nullptr;     ///< of its last run
  nodes frontier;                    ///< the nodes behind its last run
  cudaGraphNode_t record = nullptr;  ///< records the event behind `frontier`; null: not yet
};

/// The most simultaneous captures that are remembered.
constexpr std::size_t most_captures = 8;

}  // namespace

struct stream_order::state {
  std::mutex mutex;  ///< operators of a rank may be used by several threads
  gpu::event ended;  ///< behind the last run
  std::vector<captured_runs> captures;
  bool captured = false;  ///< a graph may contain runs, so `ended` may be recorded at any time
  bool pending = false;   ///< the last run was launched on a stream
  unsigned long long stream = 0;  ///< the id of that stream, which no other one ever gets

  void begin_captured(cudaStream_t on, const stream_capture& now);
  void end_captured(cudaStream_t on, const stream_capture& now);
};

stream_order::stream_order() : state_(std::make_shared<state>()) {
  // A graph may wait for the event before any run has recorded it.
  gpu::require(cudaEventRecord(state_->ended.get(), cudaStreamLegacy), problem);
}

void stream_order::state::begin_captured(cudaStream_t on, const stream_capture& now) {
  captured = true;
  const auto known = std::ranges::find(captures, now.id, &captured_runs::id);
  if (known != captures.end()) {
    if (known->stream == on || known->frontier.empty()) return;
    gpu::require(update_frontier(on, known->frontier.data(), nullptr, known->frontier.size(),
                                 cudaStreamAddCaptureDependencies),
                 problem);
    return;
  }
  if (cudaStreamWaitEvent(on, ended.get(), cudaEventWaitExternal) != cudaSuccess) {
    cudaGetLastError();
    throw error(errc::unsupported,
                "runs of operators are kept in order by event nodes, and this graph cannot have "
                "any; capture a graph without loops and conditions");
  }
  if (captures.size() == most_captures) captures.erase(captures.begin());
  captured_runs& first = captures.emplace_back();
  first.id = now.id;
  first.stream = on;
}

/// Moves the node that records the event behind the present run, which is the last run of the graph
/// so far.
void stream_order::state::end_captured(cudaStream_t on, const stream_capture& now) {
  const auto runs = std::ranges::find(captures, now.id, &captured_runs::id);
  if (runs == captures.end()) return;  // `begin` has failed
  const nodes before =
      std::exchange(runs->frontier,
                    nodes(now.frontier, now.frontier + now.frontier_size));  // NOLINT(*-pointer-*)
  runs->stream = on;
  if (runs->record == nullptr) {
    gpu::require(cudaGraphAddEventRecordNode(&runs->record, now.graph, runs->frontier.data(),
                                             runs->frontier.size(), ended.get()),
                 problem);
    return;
  }
  const auto change = [&](auto* edges, const nodes& from) {
    if (from.empty()) return;
    const nodes to(from.size(), runs->record);
    gpu::require(edges(now.graph, from.data(), to.data(), nullptr, from.size()), problem);
  };
  change(add_edges, without(runs->frontier, before));
  change(remove_edges, without(before, runs->frontier));
}

void stream_order::begin(stream_ref stream) const {
  state& s = *state_;
  auto* const on = static_cast<cudaStream_t>(stream.handle);
  std::unique_lock lock(s.mutex);
  if (on == nullptr) {
    const bool waits = s.pending || s.captured;
    lock.unlock();
    if (waits) gpu::require(cudaEventSynchronize(s.ended.get()), problem);
    return;
  }
  if (const stream_capture now = capture_of(on); now.graph != nullptr)
    return s.begin_captured(on, now);
  if (!s.captured && (!s.pending || s.stream == id_of(on))) return;
  gpu::require(cudaStreamWaitEvent(on, s.ended.get(), 0), problem);
}

void stream_order::end(stream_ref stream) const {
  state& s = *state_;
  auto* const on = static_cast<cudaStream_t>(stream.handle);
  const std::scoped_lock lock(s.mutex);
  if (on == nullptr) {
    s.pending = false;
    return;
  }
  if (s.captured) {
    if (const stream_capture now = capture_of(on); now.graph != nullptr)
      return s.end_captured(on, now);
  }
  gpu::require(cudaEventRecord(s.ended.get(), on), problem);
  s.pending = true;
  s.stream = id_of(on);
}

}  // namespace untax
