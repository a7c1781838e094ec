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
/// that does not exist here.
using operator_maker = std::function<std::unique_ptr<device_operator>(pattern)>;

/// The seconds of a run of an operator of that problem at the slowest rank, the same at every rank.
/// Collective.
using operator_timer = std::function<double(device_operator&)>;

/// Makes a timer, and for example allocates inputs for it. The timer is empty, at every rank, where
/// that is not possible. Collective.
using timer_maker = std::function<operator_timer()>;

/// Makes an operator of a world of GPUs in the pattern that `automatic` stands for: the first in
/// the order of `choose`. Where no table has the problem itself, the likely patterns are made and
/// timed one after the other, and the quickest is the first; not with UNTAX_MEASURE=0. A pattern is
/// left out if it is refused as `unsupported`, or if it is to be timed and does not fit into
/// memory. Nothing is timed if `timer` gives none. Collective. Throws `disagreement` if ranks
/// choose differently, as with different tables or variables, or if only some refuse what is to be
/// timed, and what `make` throws.
[[nodiscard]] std::unique_ptr<device_operator> make_chosen(world& w, const tuned_problem& problem,
                                                           std::string_view device,
                                                           const operator_maker& make,
                                                           const timer_maker& timer,
                                                           const environment& env = environment());

}  // namespace untax
