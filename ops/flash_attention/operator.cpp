#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/run_turns.hpp"
#include "ops/flash_attention/backend.hpp"

namespace untax {
namespace {

/// Refuses problems that are not possible; returns the problem with its scale.
flash_attention_problem sensible(flash_attention_problem p, int rank) {
  const auto refuse = [rank](const std::string& text) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {}", rank, flash_attention_name, text));
  };
  const auto between = [&](const char* what, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
    if (value >= least && value <= most) return;
    refuse(fmt::format("{} is {}; it has to be between {} and {}", what, value, least, most));
  };
  constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t most_heads = std::int64_t{1} << 20;
  between("batch", p.batch, 0, most_heads);
  between("heads", p.heads, 1, most_heads);
  between("kv_heads", p.kv_heads, 1, most_heads);
  between("head_dim", p.head_dim, 1, 4096);
  between("queries", p.queries, 0, any);
  between("keys", p.keys, 0, any);
  if (p.heads % p.kv_heads != 0)
    refuse(
        fmt::format("heads is {} and kv_heads {}; each head of the keys has to serve as many "
                    "heads of the queries, so one has to be a multiple of the other",
                    p.heads, p.kv_heads));
  if (!std::isfinite(p.scale) || p.scale < 0)
    refuse(fmt::format("scale is {}; it has to be positive, or 0 for 1 / sqrt(head_dim)", p.scale));
  if (p.scale == 0) p.scale = 1 / std::sqrt(static_cast<float>(p.head_dim));
  return p;
}

}  // namespace

flash_attention::flash_attention(world& w, const flash_attention_problem& problem,
                                 const flash_attention_options& options)
    : problem_(sensible(problem, w.rank())),
      rank_(w.rank()),
      explanation_(fmt::format(
          "{}, {} sequences, {} heads of {} elements{}: each rank for itself, nothing is sent; {}",
          flash_attention_name, problem.batch, problem.heads, problem.head_dim,
          problem.causal ? ", causal" : "",
          w.memory() == memory_kind::cuda ? "one kernel" : "row by row, in fp64")),
      turns_(new run_turns(run_turns::alone(w, flash_attention_name))),
      backend_(w.memory() == memory_kind::cuda ? device_flash_attention(w, problem_, options.order)
                                               : host_flash_attention(problem_, w.rank())) {}
flash_attention::flash_attention(flash_attention&&) noexcept = default;
flash_attention& flash_attention::operator=(flash_attention&&) noexcept = default;
flash_attention::~flash_attention() = default;

void flash_attention::check(const flash_attention_operands& o) const {
  const argument_check check{flash_attention_name, rank_};
  check.is_whole(backend_ != nullptr);
  const auto refuse = [&](const char* text) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {}", rank_, flash_attention_name, text));
  };
  if ((o.query_begins == nullptr) != (o.key_begins == nullptr))
    refuse("one of query_begins and key_begins is null; give both or none");
  // If lengths vary, the numbers of rows are those of the matrices.
  const bool vary = o.query_begins != nullptr;
  const extent queries{vary ? o.q.rows : problem_.batch * problem_.queries,
                       problem_.heads * problem_.head_dim};
  const extent keys{vary ? o.keys.rows : problem_.batch * problem_.keys,
                    problem_.kv_heads * problem_.head_dim};
  check.matrix_of("q", o.q, queries, problem_.type);
  check.matrix_of("keys", o.keys, keys, problem_.type);
  check.matrix_of("values", o.values, keys, problem_.type);
  check.matrix_of("out", as_const(o.out), queries, problem_.type);
  check.apart("q", o.q, as_const(o.out));
  check.apart("keys", o.keys, as_const(o.out));
  check.apart("values", o.values, as_const(o.out));
}

void flash_attention::run(const flash_attention_operands& operands, stream_ref stream) {
  check(operands);
  (*turns_)(stream, [&] { backend_->run(operands, stream); });
}

}  // namespace untax
