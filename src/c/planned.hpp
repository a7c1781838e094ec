#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "failure.hpp"
#include "ops/common/spec.hpp"
#include "structures.hpp"

namespace untax::c {

/// An operator with its problem, as its spec describes it.
template <class Operator>
struct planned final : untax_operator {
  using spec_type = spec_of<Operator>;
  using problem_type = typename spec_type::problem;

  planned(untax_world& w, problem_type p, const typename spec_type::options& options)
      : untax_operator(w, !spec_type::sends), problem(std::move(p)), op(w.ranks, problem, options) {
    const auto shapes = spec_type::operands(problem, w.ranks.size(), w.ranks.rank());
    operands = {shapes.begin(), shapes.end()};
  }

  [[nodiscard]] const char* kind() const noexcept override { return spec_type::name.data(); }
  [[nodiscard]] const std::string& explain() const noexcept override { return op.explain(); }
  [[nodiscard]] pattern how() const noexcept override {
    if constexpr (requires { op.plan().how; }) return op.plan().how;
    return pattern::automatic;
  }
  [[nodiscard]] matrix result() const override {
    if constexpr (requires {
                    { op.result() } -> std::same_as<matrix>;
                  }) {
      return op.result();
    } else {
      throw error(errc::invalid_argument, fmt::format("{} has no C of its own", kind()));
    }
  }

  void run(const operand_values& values, stream_ref stream) override {
    spec_type::run(op, values, stream);
  }

  problem_type problem;
  Operator op;
};

/// Plans an operator in a world. Throws its errors.
template <class Operator>
[[nodiscard]] untax_operator* make(untax_world& w, typename spec_of<Operator>::problem problem,
                                   const typename spec_of<Operator>::options& options) {
  const one_thread only(w);
  // Operators of this rank alone meet no other rank, so the dropped ones are destroyed here.
  if (!spec_of<Operator>::sends) w.ranks.end_own();
  return std::make_unique<planned<Operator>>(w, std::move(problem), options).release();
}

/// Plans an operator from structures of the caller. Errors in them are reported, too.
template <class Operator, class Problem, class Options>
[[nodiscard]] std::int32_t plan(untax_world* w, const Problem* problem, const Options* options,
                                untax_operator** op) noexcept {
  using spec_type = spec_of<Operator>;
  static_assert(bytes_of_structure(spec_type::problem_fields) == sizeof(Problem));
  static_assert(bytes_of_structure(spec_type::option_fields) == sizeof(Options));
  return guarded(w, [&] {
    require(w, "world");
    require(problem, "problem");
    require(op, "op");
    *op = make<Operator>(
        *w,
        converted<typename spec_type::problem>(spec_type::problem_fields, problem,
                                               fmt::format("untax_{}_problem", spec_type::name)),
        options == nullptr
            ? typename spec_type::options{}
            : converted<typename spec_type::options>(spec_type::option_fields, options, "options"));
  });
}

/// The operator behind a handle. Throws `invalid_argument` if `op` is null or of another kind.
template <class Operator>
[[nodiscard]] Operator& opened(untax_operator* op) {
  require(op, "op");
  if (auto* mine = dynamic_cast<planned<Operator>*>(op)) return mine->op;
  const std::string_view name = spec_of<Operator>::name;
  throw error(errc::invalid_argument,
              fmt::format("op is {}; untax_{}_run carries out {} only", op->kind(), name, name));
}

/// Calls `body` with the operator behind `op`.
template <class Operator, class Body>
[[nodiscard]] std::int32_t run(untax_operator* op, const Body& body) noexcept {
  return guarded(op == nullptr ? nullptr : op->owner, [&] { body(opened<Operator>(op)); });
}

}  // namespace untax::c
