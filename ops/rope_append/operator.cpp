#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <untax/core/memory_kind.hpp>

#include "ops/attention_common/refusal.hpp"
#include "ops/common/arguments.hpp"
#include "ops/rope_append/backend.hpp"

namespace untax {
namespace {

/// Refuses problems that are not possible; returns the problem with its rotated elements.
rope_append_problem sensible(rope_append_problem p, int rank) {
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t most_heads = std::int64_t{1} << 20;
  const attention_refusal refuse{rope_append_name, rank};
  refuse.unless_between("tokens", p.tokens, 0, any);
  refuse.unless_between("heads", p.heads, 1, most_heads);
  refuse.unless_between("kv_heads", p.kv_heads, 1, most_heads);
  refuse.unless_between("head_dim", p.head_dim, 2, 4096);
  refuse.unless_between("batch", p.batch, 1, most_heads);
  refuse.unless_between("keys", p.keys, 1, any);
  refuse.unless_between("page_size", p.page_size, 0, any);
  refuse.unless_between("pages", p.pages, p.page_size > 0 ? 1 : 0, any);
  refuse.unless_between("positions", p.positions, 1, any);
  if (p.rotated == 0) p.rotated = p.head_dim;
  if (p.rotated < 2 || p.rotated > p.head_dim || p.rotated % 2 != 0) {
    refuse(
        fmt::format("rotated is {}; it has to be even, and between 2 and {}, or 0 for all "
                    "elements of a head",
                    p.rotated, p.head_dim));
  }
  if (!std::isfinite(p.norm_offset))
    refuse(fmt::format("norm_offset is {}; it has to be a number", p.norm_offset));
  if (!std::isfinite(p.epsilon) || p.epsilon < 0)
    refuse(fmt::format("epsilon is {}; it has to be positive or 0", p.epsilon));
  return p;
}

}  // namespace

rope_append::rope_append(world& w, const rope_append_problem& problem,
                         const rope_append_options& options)
    : problem_(sensible(problem, w.rank())),
      options_(options),
      rank_(w.rank()),
      explanation_(fmt::format("{}, {} and {} heads of {} elements{}{}, {} rotated {}: each rank "
                               "for itself, nothing is sent; {}",
                               rope_append_name, problem.heads, problem.kv_heads, problem.head_dim,
                               problem.bias ? ", bias" : "", problem.norm ? ", norm" : "",
                               problem_.rotated,
                               problem.interleaved ? "in pairs of neighbours" : "in halves",
                               w.memory() == memory_kind::cuda ? "one kernel" : "row by row")),
      backend_(w.memory() == memory_kind::cuda
                   ? device_rope_append(w, problem_, options.constant_weights)
                   : host_rope_append(problem_, w.rank())) {}
rope_append::rope_append(rope_append&&) noexcept = default;
rope_append& rope_append::operator=(rope_append&&) noexcept = default;
rope_append::~rope_append() = default;

void rope_append::check(const rope_append_operands& o) const {
  const argument_check check{rope_append_name, rank_};
  const attention_refusal refuse{rope_append_name, rank_};
  check.is_whole(backend_ != nullptr);
  const std::int64_t tokens = options_.varying_tokens ? o.qkv.rows : problem_.tokens;
  refuse.unless_between("the number of tokens", tokens, 0, problem_.tokens);
  check.matrix_of("qkv", o.qkv, {tokens, qkv_columns(problem_)}, problem_.type);
  check.matrix_of("q", as_const(o.q), {tokens, problem_.heads * problem_.head_dim}, problem_.type);
  check.matrix_of("keys", as_const(o.keys), cache_extent(problem_), problem_.type);
  check.matrix_of("values", as_const(o.values), cache_extent(problem_), problem_.type);
  const auto require = [&](std::string_view name, const void* operand, bool needed,
                           std::string_view why) {
    if ((operand != nullptr) == needed) return;
    refuse(fmt::format("{} is {}, and the problem has {}{}; {}", name, needed ? "null" : "given",
                       needed ? "" : "no ", why, needed ? "give it" : "leave it out"));
  };
  require("bias", o.bias, problem_.bias, "bias");
  require("q_norm", o.q_norm, problem_.norm, "norm");
  require("k_norm", o.k_norm, problem_.norm, "norm");
  require("page_table", o.page_table, problem_.page_size > 0, "page_size");
  require("rotations", o.rotations, true, "positions");
  if (tokens > 0) require("position", o.position, true, "tokens");
  if (o.sequence == nullptr && tokens > problem_.batch) {
    refuse(
        fmt::format("sequence is null, which puts token t in sequence t, and there are {} tokens "
                    "for {} sequences; give it",
                    tokens, problem_.batch));
  }
  const std::size_t row = static_cast<std::size_t>(qkv_columns(problem_)) * size_of(problem_.type);
  for (const const_matrix& result : {as_const(o.q), as_const(o.keys), as_const(o.values)}) {
    check.apart("qkv", o.qkv, result);
    check.apart("bias", {o.bias, problem_.bias ? row : 0}, result);
  }
  check.apart("keys", as_const(o.keys), as_const(o.q));
  check.apart("values", as_const(o.values), as_const(o.q));
}

void rope_append::run(const rope_append_operands& operands, stream_ref stream) {
  check(operands);
  backend_->run(operands, stream);
}

}  // namespace untax
