#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/environment.hpp>
#include <untax/world/world.hpp>

#include "ops/choice/table.hpp"
#include "ops/common/device_operator.hpp"

namespace untax {

/// What `automatic` stands for at one problem.
struct choice {
  std::vector<pattern> order;  ///< the best first; the next where one is refused
  std::string reason;          ///< what was considered, and why; a sentence for `explain()`
};

/// Chooses by the first of these that has entries of the problem's operator and gather:
///
/// 1. `own`, if it is there, for the same rank count;
/// 2. one of `tables` that was measured on `device`, for the same rank count;
/// 3. what was measured with the nearest rank count, on `device` if there is any, or on another
/// one:
///    the cost model of those entries, for this problem with its rank count.
///
/// bulk_library is always in the order, at its end where it was not measured.
[[nodiscard]] choice choose(const tuned_problem& problem, std::string_view device,
                            const tuning_table* own, const std::vector<tuning_table>& tables);

/// The same with the tables that are compiled in, and that of UNTAX_TUNE_TABLE. Throws
/// `invalid_argument` if that cannot be read.
[[nodiscard]] choice choose(const tuned_problem& problem, std::string_view device,
                            const environment& env = environment());

/// Makes an operator of a world of GPUs in the pattern that is chosen, or, where that is refused as
/// `unsupported`, in the next one. Collective. Throws `disagreement` if ranks choose differently,
/// as with different tables, and what `make` throws.
[[nodiscard]] std::unique_ptr<device_operator> make_chosen(
    world& w, const tuned_problem& problem, std::string_view device,
    const std::function<std::unique_ptr<device_operator>(pattern)>& make);

}  // namespace untax
