#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <untax/core/environment.hpp>
#include <untax/world/world.hpp>

#include "ops/choice/table.hpp"
#include "ops/common/device_operator.hpp"

namespace untax {

/// Makes an operator of one problem in a pattern. Collective. Throws `unsupported` for a pattern
/// that there is not here.
using operator_maker = std::function<std::unique_ptr<device_operator>(pattern)>;

/// The seconds of a run of an operator of that problem, by the rank that takes longest, so that
/// every rank gets the same. Collective.
using operator_timer = std::function<double(device_operator&)>;

/// Gets ready to time operators, as by taking memory for inputs; an empty one, at every rank, where
/// that is not possible. Collective.
using timer_maker = std::function<operator_timer()>;

/// Makes an operator of a world of GPUs in the pattern that `automatic` stands for: the first that
/// `choose` has. Where no table has the problem itself, those that are likely to be the quickest
/// are made and timed one after the other, and the quickest of them is the first; not with
/// UNTAX_MEASURE=0. What is refused as `unsupported` is passed over, and so is what is to be timed
/// and does not fit into memory; nothing is timed where `timer` gives none. Collective. Throws
/// `disagreement` if ranks choose differently, as with different tables or variables, or if only
/// some refuse what is to be timed, and what `make` throws.
[[nodiscard]] std::unique_ptr<device_operator> make_chosen(world& w, const tuned_problem& problem,
                                                           std::string_view device,
                                                           const operator_maker& make,
                                                           const timer_maker& timer,
                                                           const environment& env = environment());

}  // namespace untax
