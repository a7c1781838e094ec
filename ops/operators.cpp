#include "ops/operators.hpp"

#include <vector>

namespace untax {

std::span<const operator_spec> operator_specs() {
  static const std::vector<operator_spec> specs = [] {
    std::vector<operator_spec> list;
    library_operators::for_each([&]<class Operator>() { list.push_back(spec<Operator>); });
    return list;
  }();
  return specs;
}

}  // namespace untax
