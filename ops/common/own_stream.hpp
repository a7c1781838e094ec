#pragma once

#include <memory>
#include <string_view>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Returns when all work on a stream has ended. Throws `internal`, with `what`, if it failed.
void wait_for(stream_ref stream, std::string_view what);

/// A stream of the current device that, unlike the legacy default stream, waits for no other.
class own_stream {
 public:
  /// Throws `unsupported` where CUDA is not compiled in.
  own_stream();
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() = default;

  [[nodiscard]] stream_ref get() const noexcept { return stream_; }
  /// The stream of a run: the caller's or, if none is given, this one, which then waits for the
  /// work on the default stream.
  [[nodiscard]] stream_ref unless(stream_ref given) const;
  /// Returns when all work on the stream has ended. Throws `internal`, with `what`, if it failed.
  void wait(std::string_view what) const { wait_for(stream_, what); }

 private:
  stream_ref stream_;
  std::shared_ptr<const void> kept_;  ///< keeps the stream of `stream_` alive
};

/// Whether a stream is being captured in a graph.
[[nodiscard]] bool is_captured(stream_ref stream);

/// Returns when all work on the GPU of a rank has ended, whether it failed or not.
void wait_for_device(const world& w) noexcept;

}  // namespace untax
