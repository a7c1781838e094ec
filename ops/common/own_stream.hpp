#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Returns when all that was launched on a stream has ended. Throws `internal`, with `what`, if it
/// failed.
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
  /// Returns when all that was launched has ended. Throws `internal`, with `what`, if it failed.
  void wait(std::string_view what) const { wait_for(stream_, what); }

 private:
  stream_ref stream_;
  std::shared_ptr<const void> kept_;  ///< what `stream_` names
};

/// Whether a stream is being captured in a graph.
[[nodiscard]] bool is_captured(stream_ref stream);
/// Whether kernels can use an address.
[[nodiscard]] bool reachable_by_device(const void* p);
/// Refuses arguments in memory of the host that kernels cannot use.
class reachable_arguments {
 public:
  reachable_arguments(std::string_view operator_name, int rank, int device)
      : operator_name_(operator_name), rank_(rank), device_(device) {}

  /// Throws `invalid_argument`. `number` is the number of the argument, whose last address that
  /// passed is remembered, since the check takes as long as a launch.
  void require(std::size_t number, std::string_view what, const void* p) {
    if (p == nullptr || p == known_[number]) return;
    if (!reachable_by_device(p)) refuse(what, p);
    known_[number] = p;
  }

 private:
  [[noreturn]] void refuse(std::string_view what, const void* p) const {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} lies at {}, in memory of the host that GPU {} cannot "
                            "reach; it has to be in memory of the GPU",
                            rank_, operator_name_, what, fmt::ptr(p), device_));
  }

  std::string_view operator_name_;
  int rank_;
  int device_;
  std::array<const void*, 8> known_{};
};

/// Returns when all that runs on the GPU of a rank has ended, well or not.
void wait_for_device(const world& w) noexcept;

}  // namespace untax
