#pragma once

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/option_fields.hpp"

namespace untax {

struct collective_entry;
[[nodiscard]] collective_entry all_reduce_entry();

template <>
struct spec_of<all_reduce> : collective_spec<all_reduce, all_reduce_problem> {
  static constexpr std::string_view name = "all_reduce";
  static constexpr std::string_view summary =
      "every rank ends with all inputs combined, the same bits everywhere";
  static constexpr all_reduce_problem example{.count = 1 << 20, .type = dtype::f32};
  static constexpr std::array<std::string_view, 0> without{};
  static constexpr auto* entry = &all_reduce_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&all_reduce_problem::count>("count",
                                                  "elements of the input and of the result")
          .positive(),
      fields::element_type<&all_reduce_problem::type>("of the elements"),
      fields::choice<&all_reduce_problem::how>("reduction", "how elements are combined",
                                               fields::reduction_words),
  };
};

}  // namespace untax
