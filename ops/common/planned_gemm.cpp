#include "ops/common/planned_gemm.hpp"

#include <fmt/format.h>

namespace untax {

planned_gemm::~planned_gemm() {
  if (backend && on_gpus() && ranks.unwinding()) result.abandon();
}

owned_symmetric<std::byte> allocate_result(world& w, std::string_view name, const extent& size,
                                           dtype type) {
  return w.allocate_owned<std::byte>(static_cast<std::size_t>(size.elements()) * size_of(type),
                                     fmt::format("{} result", name));
}

}  // namespace untax
