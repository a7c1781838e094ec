#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/flash_decode.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/run_turns.hpp"
#include "ops/flash_decode/backend.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax {

flash_decode::flash_decode(world& w, const flash_decode_problem& problem,
                           const flash_decode_options& options)
    : problem_(problem), turns_(make_process_owned<run_turns>(w, flash_decode_name)) {
  require_sensible(problem, w.rank());
  auto made = make_plan(w, problem, options);
  plan_ = made.plan;
  explanation_ = std::move(made.explanation);
  agree_on_lines(w, flash_decode_name, {describe(problem), fields_of(plan_)});
  backend_ = w.memory() == memory_kind::cuda ? device_attention(w, problem_, plan_)
                                             : host_attention(w, problem_, plan_, options);
  // No rank may run while another one still allocates or loads kernels.
  if (w.memory() == memory_kind::cuda) w.agree(flash_decode_name, "made");
}
flash_decode::flash_decode(flash_decode&&) noexcept = default;
flash_decode& flash_decode::operator=(flash_decode&&) noexcept = default;
flash_decode::~flash_decode() = default;

void flash_decode::check(const const_matrix& q, const attention_shard& cache,
                         const const_matrix& out) const {
  const argument_check check{flash_decode_name, plan_.rank};
  check.is_whole(backend_ != nullptr);
  const extent rows{problem_.batch * problem_.heads, problem_.head_dim};
  check.matrix_of("q", q, rows, problem_.type);
  check.matrix_of("keys", cache.keys, cache_extent(problem_), problem_.type);
  check.matrix_of("values", cache.values, cache_extent(problem_), problem_.type);
  check.matrix_of("out", out, rows, problem_.type);
  check.apart("q", q, out);
  check.apart("keys", cache.keys, out);
  check.apart("values", cache.values, out);
  const auto refuse = [&](const char* text) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {}", plan_.rank, flash_decode_name, text));
  };
  if (cache.lengths == nullptr) refuse("lengths is null; it has to hold one number a sequence");
  if (problem_.page_size > 0 && problem_.keys > 0 && cache.page_table == nullptr)
    refuse("page_table is null, and the problem has a page_size; give the table");
  if (problem_.page_size == 0 && cache.page_table != nullptr)
    refuse("page_table is given, and the problem has no page_size; leave the table out");
}

void flash_decode::run(const const_matrix& q, const attention_shard& cache, const matrix& out,
                       stream_ref stream) {
  check(q, cache, as_const(out));
  (*turns_)(stream, [&] { backend_->run(q, cache, out, stream); });
}

}  // namespace untax
