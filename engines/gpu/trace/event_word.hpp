#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/trace/event.hpp>

namespace untax::gpu {

/// The role of a warp of a kernel, for traces.
enum class warp_role : std::uint8_t {
  none,  ///< not traced
  control,
  sender,
  producer,
  poller,
  multiplier,
  epilogue,
  adder,
  streamer,
  merger,
  receiver,
  worker,  ///< a warp with several of these roles
};

/// The second word of an event of a kernel:
///
///   bits  0 to  2   trace_kind
///         3         whether it is an end
///         4 to 47   address of a counter, without the lowest three bits
///        48 to 63   value that is awaited there, or to which it is raised
///
/// If there is no counter, bits 4 to 7 hold the role, action or verb; in addition
///
///   begin of a kernel   8 to 15: the launch of a run     16 to 59: the epoch
///                      60 to 63: blocks of a cluster, minus one
///   end of a wait       8 to 15: the peer, all ones: none  16 to 39: the room
struct event_word {
  std::uint64_t bits = 0;

  static constexpr int no_peer = 0xff;

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr event_word kernel_begin(
      warp_role role, int launch, std::uint64_t epoch, int cluster = 1) noexcept {
    return {of(trace_kind::kernel, static_cast<int>(role)) | field(launch, 8) << 8 |
            field(epoch, 44) << 16 | field(cluster - 1, 4) << 60};
  }
  /// The same word with this epoch, if its own epoch is 0.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr event_word with_epoch(
      std::uint64_t epoch) const noexcept {
    return {(bits >> 16 & field(~0ULL, 44)) == 0 ? bits | field(epoch, 44) << 16 : bits};
  }
  /// The begin of an action, or of a kernel.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr event_word begin(trace_kind kind,
                                                                    int what) noexcept {
    return {of(kind, what)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr event_word end(trace_kind kind) noexcept {
    return {of(kind, 0) | end_bit};
  }
  /// `counter`: its address, or 0 if data are their own signal.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr event_word at_counter(
      trace_kind kind, std::uint64_t counter, std::uint64_t value) noexcept {
    return {of(kind, 0) | field(counter >> 3, 44) << 4 | field(value, 16) << 48};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr event_word wait_end(int verb, int peer,
                                                                       int room) noexcept {
    return {of(trace_kind::wait, verb) | end_bit | field(peer, 8) << 8 | field(room, 24) << 16};
  }

  [[nodiscard]] constexpr trace_kind kind() const noexcept {
    return static_cast<trace_kind>(part(0, 3));
  }
  [[nodiscard]] constexpr bool ends() const noexcept { return (bits & end_bit) != 0; }
  /// Role, action or verb.
  [[nodiscard]] constexpr int what() const noexcept { return static_cast<int>(part(4, 4)); }
  [[nodiscard]] constexpr int launch() const noexcept { return static_cast<int>(part(8, 8)); }
  [[nodiscard]] constexpr std::int64_t epoch() const noexcept {
    return static_cast<std::int64_t>(part(16, 44));
  }
  [[nodiscard]] constexpr int cluster() const noexcept { return 1 + static_cast<int>(part(60, 4)); }
  [[nodiscard]] constexpr int peer() const noexcept {
    const auto peer = static_cast<int>(part(8, 8));
    return peer == no_peer ? -1 : peer;
  }
  [[nodiscard]] constexpr int room() const noexcept { return static_cast<int>(part(16, 24)); }
  /// The lower 47 bits of the address.
  [[nodiscard]] constexpr std::uint64_t counter() const noexcept { return part(4, 44) << 3; }
  [[nodiscard]] constexpr std::int64_t value() const noexcept {
    return static_cast<std::int64_t>(part(48, 16));
  }

 private:
  static constexpr std::uint64_t end_bit = 8;

  template <class Value>
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::uint64_t field(Value value,
                                                                       int width) noexcept {
    return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::uint64_t of(trace_kind kind,
                                                                    int what) noexcept {
    return field(kind, 3) | field(what, 4) << 4;
  }
  [[nodiscard]] constexpr std::uint64_t part(int shift, int width) const noexcept {
    return field(bits >> shift, width);
  }
};

}  // namespace untax::gpu
