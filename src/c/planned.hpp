#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "failure.hpp"
#include "given.hpp"

namespace untax::c {

/// An operator with its problem. `Traits` describes the operator to the ABI: `name`, the types `op`
/// and `problem`, `operands(problem, world, rank)`, and `alone` if it does not concern other ranks.
template <class Traits>
struct planned final : untax_operator {
  template <class Options>
  planned(untax_world& w, const typename Traits::problem& p, const Options& options)
      : untax_operator(w, alone()), problem(p), op(w.ranks, p, options) {}

  [[nodiscard]] static constexpr bool alone() noexcept {
    return requires { Traits::alone; };
  }
  [[nodiscard]] const char* kind() const noexcept override { return Traits::name; }
  [[nodiscard]] const std::string& explain() const noexcept override { return op.explain(); }
  [[nodiscard]] pattern how() const noexcept override { return op.plan().how; }
  [[nodiscard]] std::vector<operand_size> operands() const override {
    return Traits::operands(problem, owner->ranks.size(), owner->ranks.rank());
  }

  typename Traits::problem problem;
  typename Traits::op op;
};

/// Plans an operator. Errors in the problem and in the options are reported, too.
template <class Traits, class Problem, class Options>
[[nodiscard]] std::int32_t plan(untax_world* w, const Problem* problem, const Options* options,
                                untax_operator** made) noexcept {
  return guarded(w, [&] {
    require(w, "world");
    require(problem, "problem");
    require(made, "op");
    const one_thread only(*w);
    // Operators of this rank alone have no meeting in which dropped ones end.
    if (planned<Traits>::alone()) w->ranks.end_own();
    *made =
        std::make_unique<planned<Traits>>(*w, problem_of(problem), options_of(options)).release();
  });
}

/// The operator behind a handle. Throws `invalid_argument` if `op` is null or of another kind.
template <class Traits>
[[nodiscard]] typename Traits::op& opened(untax_operator* op) {
  require(op, "op");
  if (auto* mine = dynamic_cast<planned<Traits>*>(op)) return mine->op;
  throw error(errc::invalid_argument, fmt::format("op is {}; untax_{}_run carries out {} only",
                                                  op->kind(), Traits::name, Traits::name));
}

/// Calls `body` with the operator behind `op`.
template <class Traits, class Body>
[[nodiscard]] std::int32_t run(untax_operator* op, const Body& body) noexcept {
  return guarded(op == nullptr ? nullptr : op->owner, [&] { body(opened<Traits>(op)); });
}

}  // namespace untax::c
