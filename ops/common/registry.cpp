#include "ops/common/registry.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {

const std::vector<operator_entry>& operators() {
  static const std::vector<operator_entry> all = {all_gather_gemm_entry(), gemm_all_scatter_entry(),
                                                  gemm_reduce_scatter_entry()};
  return all;
}

const operator_entry& operator_named(std::string_view name) {
  std::string known;
  for (const auto& entry : operators()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw error(errc::invalid_argument,
              fmt::format("there is no operator \"{}\"; there are {}", name, known));
}

}  // namespace untax
