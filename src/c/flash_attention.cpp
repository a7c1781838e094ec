#include <untax/c/flash_attention.h>

#include <untax/core/memory_kind.hpp>
#include <untax/ops/flash_attention.hpp>

#include "ops/flash_attention/backend.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

/// The operator with `plan` and `explain`, which other operators define themselves.
class explained_attention {
 public:
  struct no_plan {
    pattern how = pattern::automatic;  ///< nothing is sent, so there is no pattern
  };

  explained_attention(world& w, const flash_attention_problem& p, order::attention_order order)
      : op_(w, p, order),
        explanation_(fmt::format(
            "{}, {} sequences, {} heads of {} elements{}: each rank for itself, nothing is sent; "
            "{}",
            flash_attention_name, p.batch, p.heads, p.head_dim, p.causal ? ", causal" : "",
            w.memory() == memory_kind::cuda ? "one kernel" : "row by row, in fp64")) {}

  void run(const flash_attention_operands& o, stream_ref stream) { op_.run(o, stream); }
  [[nodiscard]] static no_plan plan() noexcept { return {}; }
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  flash_attention op_;
  std::string explanation_;
};

struct attending {
  static constexpr const char* name = flash_attention_name.data();
  static constexpr bool alone = true;
  using op = explained_attention;
  using problem = flash_attention_problem;
  static std::vector<operand_size> operands(const problem& p, int /*world*/, int /*rank*/) {
    const std::int64_t queries = p.batch * p.queries;
    const std::int64_t keys = p.batch * p.keys;
    return {{"q", queries, p.heads * p.head_dim, p.type},
            {"keys", keys, p.kv_heads * p.head_dim, p.type},
            {"values", keys, p.kv_heads * p.head_dim, p.type},
            {"out", queries, p.heads * p.head_dim, p.type}};
  }
};

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_flash_attention_plan(untax_world* world, const untax_flash_attention_problem* problem,
                                   const untax_flash_attention_options* options,
                                   untax_operator** op) {
  return plan<attending>(world, problem, options, op);
}

int32_t untax_flash_attention_run(untax_operator* op, const untax_attention_arguments* arguments,
                                  void* stream) {
  return run<attending>(
      op, [&](explained_attention& it) { it.run(operands_of(arguments), stream_of(stream)); });
}
