#include <untax/core/error.hpp>

namespace untax {

std::string_view name_of(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::not_symmetric:
      return "not_symmetric";
    case errc::out_of_memory:
      return "out_of_memory";
    case errc::unsupported:
      return "unsupported";
    case errc::disagreement:
      return "disagreement";
    case errc::peer_lost:
      return "peer_lost";
    case errc::timeout:
      return "timeout";
    case errc::aborted:
      return "aborted";
    case errc::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace untax
