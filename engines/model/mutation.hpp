#pragma once

#include <string>
#include <vector>

#include <untax/flow/fault_tap.hpp>
#include <untax/tile/step.hpp>

#include "engines/model/scenario.hpp"

namespace untax::model {

enum class change : std::uint8_t {
  drop,   ///< the verb is left out
  weaken  ///< the verb is carried out, but relaxed: it signals or waits, and orders nothing
};

/// One way to break a protocol: a change to a verb in every step of one class. A class is what a
/// reader of the protocol sees as one line of it: kernel, action, and whether the room leads to
/// another rank or stays at home.
struct mutation {
  change how = change::drop;
  channel_verb verb = channel_verb::reserve;
  int kernel = 0;
  action what = action::none;
  bool local = false;

  /// Whether this verb of this step, which has it, is changed.
  [[nodiscard]] bool strikes(int kernel_index, const step& s, channel_verb v) const noexcept;
  friend bool operator==(const mutation&, const mutation&) = default;
};

/// "drop acquire of multiply steps in kernel 0 (gemm), room from another rank"
[[nodiscard]] std::string describe(const mutation& m, const scenario& s);

/// Every mutation for which the scenario has a verb that does something. A reserve that is never
/// waited for in the epochs of the scenario does nothing, and neither does the retire of a room
/// that has no bytes.
[[nodiscard]] std::vector<mutation> mutants_of(const scenario& s);

/// The plans without the verbs that `m` drops; unchanged if it weakens.
[[nodiscard]] std::vector<schedule::rank_plan> mutated_plans(const scenario& s, const mutation& m);

/// Whether the schedule checker proves that the mutant is as right as the original: the verb orders
/// nothing that is not ordered otherwise. No search can catch such a mutant, and the protocol does
/// not need the verb in this scenario.
[[nodiscard]] bool provably_harmless(const scenario& s, const mutation& m);

}  // namespace untax::model
