#pragma once

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/option_fields.hpp"

namespace untax {

struct collective_entry;
[[nodiscard]] collective_entry reduce_scatter_entry();

template <>
struct spec_of<reduce_scatter> : collective_spec<reduce_scatter, reduce_scatter_problem> {
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr std::string_view summary = "rank r ends with shard r of all inputs combined";
  static constexpr reduce_scatter_problem example{.count = 1 << 20, .type = dtype::f32};
  static constexpr std::array<std::string_view, 1> without = {"phases"};
  static constexpr auto* entry = &reduce_scatter_entry;
  static constexpr field problem_fields[] = {
      fields::integer<&reduce_scatter_problem::count>("count", "elements of the input of each rank")
          .positive(),
      fields::element_type<&reduce_scatter_problem::type>("of the elements"),
      fields::choice<&reduce_scatter_problem::how>("reduction", "how elements are combined",
                                                   fields::reduction_words),
  };
};

}  // namespace untax
