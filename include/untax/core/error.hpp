#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace untax {

/// What kind of thing went wrong; the text of the `error` says the rest.
enum class errc {
  invalid_argument,  ///< a shape, pointer, type or option that cannot be used
  not_symmetric,     ///< a pointer that does not lie in the symmetric heap where it has to
  out_of_memory,     ///< the symmetric heap, or the machine, has no room
  unsupported,       ///< a combination that this backend does not offer
  disagreement,      ///< ranks do not do the same thing
  peer_lost,         ///< a rank ended (or was killed) while others waited for it
  timeout,           ///< a bounded wait reached its limit
  aborted,           ///< another rank failed and stopped the world
  internal,          ///< a broken invariant of untax itself
};

/// The word for `code`, as it appears in messages ("peer_lost", ...).
[[nodiscard]] std::string_view name_of(errc code) noexcept;

/// The one exception type of the public interface. `what()` names rank, operator and site and says
/// what to do.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

}  // namespace untax
