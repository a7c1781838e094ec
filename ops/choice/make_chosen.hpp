#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/world/world.hpp>

#include "ops/choice/table.hpp"
#include "ops/common/device_operator.hpp"

namespace untax {

/// Makes an operator of a problem in a pattern: for `rows` rows or, in a capacity, for any number
/// up to `rows`. Collective. Throws `unsupported` for a pattern that does not exist in this world.
using operator_maker =
    std::function<std::unique_ptr<device_operator>(pattern how, std::int64_t rows)>;

/// The seconds of a run of an operator with the rows that were set last, at the slowest rank, the
/// same at every rank. Collective.
using operator_timer = std::function<double(device_operator&)>;

/// Makes a timer, and for example allocates inputs for it. The timer is empty, at every rank, where
/// that is not possible. Collective.
using timer_maker = std::function<operator_timer()>;

/// The patterns that are likely for a number of rows if no table has the operator, the best first.
/// Empty if any pattern may be likely.
using usual_patterns = std::function<std::vector<pattern>(std::int64_t rows)>;

/// The parts of an operator that `make_chosen` needs.
struct chosen_parts {
  operator_maker make;
  timer_maker timer;
  usual_patterns usual = {};  ///< may be empty
  /// Returns an object that is kept so that bulk_library can be made again quickly; called if it
  /// was made.
  std::function<std::shared_ptr<const void>()> libraries = {};
};

/// The operators that `automatic` stands for: one or, in a capacity, several, by ascending rows. An
/// operator may serve several numbers of rows.
struct chosen_operators {
  std::vector<operator_up_to> by_rows;
  std::string reason;                     ///< a sentence for `explain()`
  std::shared_ptr<const void> libraries;  ///< null if bulk_library was not made
};

/// The operators of `ends` ends, by ascending rows: `make(end, operators)` adds the operators of an
/// end, by descending rows. The end with the most rows comes first, so that memory that plans share
/// is large enough for all of them. If one rank is out of memory at an end, all ranks are, and free
/// their operators together.
template <class Make>
[[nodiscard]] std::vector<operator_up_to> operators_of(std::size_t ends, const Make& make) {
  std::vector<operator_up_to> operators;
  try {
    for (std::size_t end = ends; end-- > 0;) make(end, operators);
  } catch (const error& e) {
    if (e.code() == errc::out_of_memory) {
      while (!operators.empty()) operators.pop_back();
    }
    throw;
  }
  std::ranges::reverse(operators);
  return operators;
}

/// Makes an operator of a world of GPUs in the patterns that `automatic` stands for. `ends` are the
/// numbers of rows up to which a plan is to serve, ascending: one is a problem of this many rows,
/// and several are a capacity (`row_ends`). `problem` is that of the last one.
///
/// For each end the pattern is the first in the order of `choose`. If no table of these kernels has
/// the problem itself, the likely patterns are made and timed one after the other, and the quickest
/// becomes the first; not with UNTAX_MEASURE=0. In a capacity that is done at a few ends
/// (`ends_to_time`), with the rows of the end and with fewer (`rows_below`): shards of an end are
/// whole tiles, which favours some patterns, so such an end may have two operators. Between two of
/// these ends the logarithms of times over those of the table, or of times alone, are interpolated
/// linearly in log(rows); below the last of these ends its times are used. The pattern that is then
/// the quickest is timed, and others as long as they are expected to be quicker.
///
/// bulk_library is made once, for all numbers of rows. A pattern is left out if it is refused as
/// `unsupported`, or if it is to be timed and does not fit into memory. Nothing is timed if `timer`
/// gives none. Collective. Throws `disagreement` if ranks choose differently, as with different
/// tables or variables, or if only some ranks refuse a pattern that is to be timed; and the errors
/// of `make`.
[[nodiscard]] chosen_operators make_chosen(world& w, const tuned_problem& problem,
                                           std::span<const std::int64_t> ends,
                                           std::string_view device, const chosen_parts& parts,
                                           const environment& env = environment());

}  // namespace untax
