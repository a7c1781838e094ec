#pragma once

#include <cstdint>
#include <string_view>

#include <untax/flow/name_ref.hpp>

namespace untax {

/// The verbs that can wait, as they appear in messages.
enum class verb : std::uint8_t { reserve, acquire, wait_until, barrier, agree };

/// The name of `v` in messages.
[[nodiscard]] constexpr std::string_view name_of(verb v) noexcept {
  constexpr std::string_view names[] = {"reserve", "acquire", "wait_until", "barrier", "agree"};
  return names[static_cast<std::uint8_t>(v)];
}

/// Describes a wait: its place and its counter. `peer` is the rank that raises the counter, and so
/// the suspect.
struct wait_site {
  name_ref operator_name;
  verb what = verb::wait_until;
  int peer = -1;
  int room = -1;
  std::uint64_t expected = 0;
  /// How far the waiter has come in the program that all ranks execute in the same order; 0: not
  /// known. Of ranks that wait for each other, the one that is behind the others waits for the
  /// signal that was never raised.
  std::uint64_t progress = 0;
};

/// How a wait ended. After any outcome but `ok` the waiter touches no more rooms and leaves through
/// the normal exit.
enum class wait_outcome : std::uint8_t {
  ok,
  timeout,    ///< the limit passed; this waiter stopped the world
  peer_lost,  ///< a rank ended without signalling; this waiter stopped the world
  aborted,    ///< another waiter or rank stopped the world
};

}  // namespace untax
