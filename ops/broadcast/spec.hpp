#pragma once

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/option_fields.hpp"

namespace untax {

struct collective_entry;
[[nodiscard]] collective_entry broadcast_entry();

template <>
struct spec_of<broadcast>
    : collective_spec<broadcast, broadcast_problem, operand_use::optional_read> {
  static constexpr std::string_view name = "broadcast";
  static constexpr std::string_view summary = "every rank ends with the elements of the root";
  static constexpr broadcast_problem example{.count = 1 << 20, .type = dtype::f32};
  static constexpr std::array<std::string_view, 1> without = {"inputs"};
  static constexpr auto* entry = &broadcast_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&broadcast_problem::count>("count", "elements that every rank ends with")
          .positive(),
      fields::element_type<&broadcast_problem::type>("of the elements"),
      fields::integer<&broadcast_problem::root>("root", "the rank whose elements they are"),
  };
};

}  // namespace untax
