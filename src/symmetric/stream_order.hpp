#pragma once

#include <memory>

#include <untax/core/stream_ref.hpp>

namespace untax {

/// Keeps the runs of one operator, or of several, on a GPU one after another, in the order of the
/// calls, whatever their streams. `begin` makes a stream wait for the run before, and `end` records
/// an event behind this one.
///
/// The host does not see launches of a CUDA graph. So the first captured run of a graph gets a node
/// in front that waits for the event, and the graph one node behind its last run that records it.
/// From the first capture on, every run on a stream waits for the event. Within a graph there is no
/// node between neighbouring runs, which may still overlap (programmatic dependent launch).
class stream_order {
 public:
  /// Makes the event on the current device. Throws `internal`.
  stream_order();

  /// Has to be called before the launches of a run on `stream`. Without a stream it returns when
  /// the run before has ended. Throws `internal`, and `unsupported` in a capture whose graph cannot
  /// have event nodes, such as the body of a loop or a condition.
  void begin(stream_ref stream) const;
  /// Has to be called after the launches of a run on `stream`; without a stream, when the run has
  /// ended. Throws `internal`.
  void end(stream_ref stream) const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace untax
