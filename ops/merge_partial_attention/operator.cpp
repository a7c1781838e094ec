#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/ops/merge_partial_attention.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/run_turns.hpp"
#include "ops/merge_partial_attention/backend.hpp"
#include "ops/merge_partial_attention/planning.hpp"

namespace untax {

merge_partial_attention::merge_partial_attention(world& w,
                                                 const merge_partial_attention_problem& problem,
                                                 const merge_partial_attention_options& options)
    : problem_(problem),
      varying_(options.varying_tokens),
      turns_(make_process_owned<run_turns>(w, merge_partial_attention_name)) {
  require_sensible(problem, w.rank());
  auto planned = make_plan(w, problem, options);
  plan_ = planned.plan;
  explanation_ = std::move(planned.explanation);
  agree_on_lines(
      w, merge_partial_attention_name,
      {fmt::format("{}{}", describe(problem), varying_ ? ", at most" : ""), fields_of(plan_)});
  if (w.memory() != memory_kind::cuda) {
    backend_ = merge_on_host(w, problem_, plan_, options);
    return;
  }
  w.use_device();
  backend_ = merge_on_device(w, problem_, plan_, varying_);
  // No rank may run while another one still allocates or loads kernels.
  w.agree(merge_partial_attention_name, "made");
}
merge_partial_attention::merge_partial_attention(merge_partial_attention&&) noexcept = default;
merge_partial_attention& merge_partial_attention::operator=(merge_partial_attention&&) noexcept =
    default;
merge_partial_attention::~merge_partial_attention() = default;

range merge_partial_attention::heads_of(const merge_partial_attention_problem& problem, int world,
                                        int rank) {
  if (problem.get == merged_heads::all) return {0, problem.heads};
  return sharding{problem.heads, world}.of(rank);
}

void merge_partial_attention::run(const const_matrix& partial_o, const const_matrix& partial_lse,
                                  const matrix& out, const matrix& lse, stream_ref stream) {
  const argument_check check{merge_partial_attention_name, plan_.rank};
  check.is_whole(backend_ != nullptr);
  const std::int64_t tokens = varying_ ? partial_lse.rows : problem_.tokens;
  if (tokens < 0 || tokens > problem_.tokens) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: partial_lse has {} tokens; the capacity is {}",
                            plan_.rank, merge_partial_attention_name, tokens, problem_.tokens));
  }
  const std::int64_t own = heads_of(problem_, plan_.world, plan_.rank).size;
  check.matrix_of("partial_o", partial_o, {tokens * problem_.heads, problem_.head_dim},
                  problem_.type);
  check.matrix_of("partial_lse", partial_lse, {tokens, problem_.heads}, dtype::f32);
  check.matrix_of("out", as_const(out), {tokens * own, problem_.head_dim}, problem_.type);
  check.matrix_of("lse", as_const(lse), {tokens, own}, dtype::f32);
  check.apart("out", as_const(out), as_const(lse));
  (*turns_)(stream, [&] { backend_->run(partial_o, partial_lse, out, lse, stream); });
}

}  // namespace untax
