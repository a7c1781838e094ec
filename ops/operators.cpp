#include "ops/operators.hpp"

#include <type_traits>
#include <vector>

#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"

namespace untax {

std::span<const operator_spec> operator_specs() {
  static const std::vector<operator_spec> specs = [] {
    std::vector<operator_spec> list;
    library_operators::for_each([&]<class Operator>() { list.push_back(spec<Operator>); });
    return list;
  }();
  return specs;
}

std::vector<protocol_variant> variants_of(const operator_spec& operation) {
  std::vector<protocol_variant> variants;
  library_operators::for_each([&]<class Operator>() {
    if (spec<Operator>.name != operation.name) return;
    if constexpr (requires { spec_of<Operator>::variants(); }) {
      variants = spec_of<Operator>::variants();
    } else if constexpr (std::is_base_of_v<collective, Operator>) {
      variants = variants_of(collective_named(operation.name));  // variants keep a reference to it
    } else if constexpr (requires { spec_of<Operator>::entry(); }) {
      variants = variants_of(operator_named(operation.name));
    }
  });
  return variants;
}

}  // namespace untax
