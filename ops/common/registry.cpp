#include "ops/common/registry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {

const std::vector<operator_entry>& operators() {
  static const std::vector<operator_entry> all = {all_gather_gemm_entry(), gemm_all_scatter_entry(),
                                                  gemm_reduce_scatter_entry(),
                                                  gemm_all_reduce_entry()};
  return all;
}

const operator_entry* find_operator(std::string_view name) {
  const auto found = std::ranges::find(operators(), name, &operator_entry::name);
  return found != operators().end() ? &*found : nullptr;
}

const operator_entry& operator_named(std::string_view name) {
  if (const operator_entry* found = find_operator(name)) return *found;
  std::string known;
  for (const auto& entry : operators()) known += (known.empty() ? "" : ", ") + entry.name;
  throw error(errc::invalid_argument,
              fmt::format("there is no operator \"{}\"; there are {}", name, known));
}

}  // namespace untax
