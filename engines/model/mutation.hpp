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

/// One way to break a protocol: a change to a verb in every step of one class, which is about one
/// line of the protocol. Steps of a class have the same kernel and action, and their rooms are
/// either all between ranks or all within the rank.
struct mutation {
  change how = change::drop;
  channel_verb verb = channel_verb::reserve;
  int kernel = 0;
  action what = action::none;
  bool local = false;

  /// Whether the mutation changes verb `v` of a step that has it.
  [[nodiscard]] bool strikes(int kernel_index, const step& s, channel_verb v) const noexcept;
  friend bool operator==(const mutation&, const mutation&) = default;
};

/// "drop acquire of steps that multiply in kernel 0 (gemm), room between ranks"
[[nodiscard]] std::string describe(const mutation& m, const scenario& s);

/// Every mutation for which the scenario has a verb with an effect. A reserve that is never waited
/// for in the epochs of the scenario has none, nor has the retire of a room without bytes.
[[nodiscard]] std::vector<mutation> mutants_of(const scenario& s);

/// The plans without the verbs that `m` drops; unchanged if it weakens.
[[nodiscard]] std::vector<schedule::rank_plan> mutated_plans(const scenario& s, const mutation& m);

/// Whether the schedule checker proves that the mutant is as correct as the original: the verb
/// orders nothing that is not ordered otherwise. No search can kill such a mutant, and the protocol
/// does not need the verb in this scenario.
[[nodiscard]] bool provably_harmless(const scenario& s, const mutation& m);

}  // namespace untax::model
