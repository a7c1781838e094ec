#pragma once

#include <cstdint>
#include <string_view>

#include <untax/flow/name_ref.hpp>

namespace untax {

/// The verbs that can wait, as they appear in messages.
enum class verb : std::uint8_t { reserve, acquire, wait_until, barrier, agree };

[[nodiscard]] constexpr std::string_view name_of(verb v) noexcept {
  constexpr std::string_view names[] = {"reserve", "acquire", "wait_until", "barrier", "agree"};
  return names[static_cast<std::uint8_t>(v)];
}

/// Where and for what somebody waits. `peer` is the rank that would raise the counter: the suspect.
struct wait_site {
  name_ref operator_name;
  verb what = verb::wait_until;
  int peer = -1;
  int room = -1;
  std::uint64_t expected = 0;
  /// How far the waiter has come in what all ranks do in the same order; 0: not known. Among ranks
  /// that wait for each other the one that is behind the others waits for what was never signalled.
  std::uint64_t progress = 0;
};

/// How a wait ended. Anything but `ok` means: leave through the normal exit, touch no more rooms.
enum class wait_outcome : std::uint8_t {
  ok,
  timeout,    ///< the limit passed; this waiter stopped the world
  peer_lost,  ///< the peer ended without signalling; this waiter stopped the world
  aborted,    ///< somebody else stopped the world
};

}  // namespace untax
