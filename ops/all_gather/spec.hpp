#pragma once

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/option_fields.hpp"

namespace untax {

struct collective_entry;
[[nodiscard]] collective_entry all_gather_entry();

template <>
struct spec_of<all_gather> : collective_spec<all_gather, all_gather_problem> {
  static constexpr std::string_view name = "all_gather";
  static constexpr std::string_view summary = "every rank ends with the shards of all ranks";
  static constexpr all_gather_problem example{.count = 1 << 20, .type = dtype::f32};
  static constexpr std::array<std::string_view, 2> without = {"phases", "inputs"};
  static constexpr auto* entry = &all_gather_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&all_gather_problem::count>("count", "elements of the result").positive(),
      fields::element_type<&all_gather_problem::type>("of the elements"),
  };
};

}  // namespace untax
