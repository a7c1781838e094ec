#include <untax/core/build_info.hpp>

namespace untax {

std::string_view build_commit() noexcept { return UNTAX_COMMIT; }

}  // namespace untax
