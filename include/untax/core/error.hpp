#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace untax {

/// The kind of a failure. The text of the `error` has the details.
enum class errc {
  invalid_argument,  ///< a shape, pointer, type or option that cannot be used
  not_symmetric,     ///< a pointer is not in the symmetric heap, where it has to be
  out_of_memory,     ///< the symmetric heap, or the machine, has too little memory left
  unsupported,       ///< a combination that this backend does not offer
  disagreement,      ///< ranks make different calls, or the same call with different arguments
  peer_lost,         ///< a rank ended (or was killed) while others waited for it
  timeout,           ///< a bounded wait reached its limit
  aborted,           ///< another rank failed and stopped the world
  internal,          ///< a broken invariant of untax itself
};

/// The name of `code` as it appears in messages ("peer_lost", ...).
[[nodiscard]] std::string_view name_of(errc code) noexcept;

/// The one exception type of the public interface. `what()` names the rank, the operator and the
/// site, and says what to do.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

}  // namespace untax
