#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/run_turns.hpp"
#include "ops/linear/backend.hpp"

namespace untax {
namespace {

/// Refuses problems that are not possible.
linear_problem sensible(const linear_problem& p, int rank) {
  const auto refuse = [rank](const std::string& text) {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", rank, linear_name, text));
  };
  const auto between = [&](const char* field, std::int64_t value, std::int64_t least) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
    if (value >= least && value <= most) return;
    refuse(fmt::format("{} is {}; it has to be between {} and {}", field, value, least, most));
  };
  between("rows", p.rows, 0);
  between("n", p.n, 1);
  between("k", p.k, 1);
  if (is_gated(p.activation) && p.n % linear::group != 0) {
    refuse(
        fmt::format("n is {}; with {} it has to be a multiple of {}, since rows of gate and up lie "
                    "in groups of this size",
                    p.n, name_of(p.activation), linear::group));
  }
  return p;
}

}  // namespace

linear::linear(world& w, const linear_problem& problem, const linear_options& options)
    : problem_(sensible(problem, w.rank())),
      options_(options),
      rank_(w.rank()),
      turns_(new run_turns(run_turns::alone(w, linear_name))),
      backend_(w.memory() == memory_kind::cuda ? device_linear(w, problem_, options)
                                               : host_linear(problem_, options, w.rank())) {
  explanation_ =
      fmt::format("{}, {} rows{}, n {}, k {}, {}, {}: each rank for itself; {}", linear_name,
                  problem.rows, options.varying_rows ? " at most" : "", problem.n, problem.k,
                  name_of(problem.type), name_of(problem.activation), backend_->text());
}
linear::linear(linear&&) noexcept = default;
linear& linear::operator=(linear&&) noexcept = default;
linear::~linear() = default;

void linear::check(const linear_operands& o) const {
  const argument_check check{linear_name, rank_};
  check.is_whole(backend_ != nullptr);
  const std::int64_t rows = options_.varying_rows ? o.x.rows : problem_.rows;
  if (rows > problem_.rows) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: x has {} rows; the operator was planned for {} at most",
                            rank_, linear_name, rows, problem_.rows));
  }
  const std::int64_t columns = product_columns(problem_);
  check.matrix_of("x", o.x, {rows, problem_.k}, problem_.type);
  check.matrix_of("weights", o.weights, {columns, problem_.k}, problem_.type);
  check.matrix_of("out", as_const(o.out), {rows, problem_.n}, problem_.type);
  check.apart("x", o.x, as_const(o.out));
  check.apart("weights", o.weights, as_const(o.out));
  if (o.bias != nullptr)
    check.apart("bias", {o.bias, static_cast<std::size_t>(columns) * size_of(problem_.type)},
                as_const(o.out));
}

void linear::run(const linear_operands& operands, stream_ref stream) {
  check(operands);
  if (operands.x.rows == 0) return;
  (*turns_)(stream, [&] { backend_->run(operands, stream); });
}

void linear::interleave(const const_matrix& gate, const const_matrix& up, const matrix& weights) {
  const auto refuse = [](const std::string& text) {
    throw error(errc::invalid_argument, fmt::format("{}: interleave: {}", linear_name, text));
  };
  if (gate.rows % group != 0)
    refuse(fmt::format("gate has {} rows; they have to be a multiple of {}", gate.rows, group));
  if (up.rows != gate.rows || up.cols != gate.cols || weights.rows != 2 * gate.rows ||
      weights.cols != gate.cols)
    refuse(
        fmt::format("gate is {} x {}, up {} x {} and weights {} x {}; gate and up have one size "
                    "and weights twice the rows",
                    gate.rows, gate.cols, up.rows, up.cols, weights.rows, weights.cols));
  if (up.type != gate.type || weights.type != gate.type)
    refuse(fmt::format("gate is {}, up {} and weights {}; they have to be of one type",
                       name_of(gate.type), name_of(up.type), name_of(weights.type)));
  const std::size_t bytes = size_of(gate.type);
  const auto place = [bytes](auto* data, std::int64_t row, std::int64_t stride) {
    return data + static_cast<std::size_t>(row * stride) * bytes;
  };
  auto* const to = static_cast<std::byte*>(weights.data);
  for (std::int64_t row = 0; row < gate.rows; ++row) {
    const std::int64_t first = gate_column(row);
    const std::size_t length = static_cast<std::size_t>(gate.cols) * bytes;
    std::memcpy(place(to, first, weights.stride),
                place(static_cast<const std::byte*>(gate.data), row, gate.stride), length);
    std::memcpy(place(to, first + group, weights.stride),
                place(static_cast<const std::byte*>(up.data), row, up.stride), length);
  }
}

}  // namespace untax
