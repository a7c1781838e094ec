#pragma once

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/option_fields.hpp"

namespace untax {

struct collective_entry;
[[nodiscard]] collective_entry all_to_all_entry();

template <>
struct spec_of<all_to_all> : collective_spec<all_to_all, all_to_all_problem> {
  static constexpr std::string_view name = "all_to_all";
  static constexpr std::string_view summary =
      "every rank ends with the parts that the other ranks have for it";
  static inline const all_to_all_problem example{.count = 1 << 20, .type = dtype::f32};
  static constexpr std::array<std::string_view, 2> without = {"phases", "inputs"};
  static constexpr bool uneven = true;  ///< parts, or shards, of different sizes can be run
  static constexpr auto* entry = &all_to_all_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&all_to_all_problem::count>("count",
                                                  "elements of each part, if counts is empty")
          .positive(),
      fields::element_type<&all_to_all_problem::type>("of the elements"),
      fields::integers<&all_to_all_problem::counts>(
          "counts", "part (from, to) has counts[from * W + to] elements"),
  };
};

}  // namespace untax
