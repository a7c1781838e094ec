#include <untax/c/merge_partial_attention.h>

#include <untax/ops/merge_partial_attention.hpp>

#include "ops/merge_partial_attention/planning.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

struct merging {
  static constexpr const char* name = merge_partial_attention_name.data();
  using op = merge_partial_attention;
  using problem = merge_partial_attention_problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    const std::int64_t own = op::heads_of(p, world, rank).size;
    return {{"partial_o", p.tokens * p.heads, p.head_dim, p.type},
            {"partial_lse", p.tokens, p.heads, dtype::f32},
            {"out", p.tokens * own, p.head_dim, p.type},
            {"lse", p.tokens, own, dtype::f32}};
  }
};

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_merge_partial_attention_plan(untax_world* world,
                                           const untax_merge_partial_attention_problem* problem,
                                           const untax_merge_partial_attention_options* options,
                                           untax_operator** op) {
  return plan<merging>(
      world, problem, op,
      [&]() -> untax::merge_partial_attention_problem {
        const auto p = taken(problem, "untax_merge_partial_attention_problem");
        return {.tokens = p.tokens,
                .heads = p.heads,
                .head_dim = p.head_dim,
                .type = type_of("type", p.type),
                .get = chosen("own_heads", p.own_heads, untax::merged_heads::own),
                .log2 = p.log2 != 0};
      },
      [&]() -> untax::merge_partial_attention_options {
        const auto o = taken_if_given(options, "untax_merge_partial_attention_options");
        return {.how = pattern_of(o.pattern),
                .launch = launch_of(o.eager),
                .workers = o.workers,
                .senders = o.senders,
                .varying_tokens = o.varying_tokens != 0};
      });
}

int32_t untax_merge_partial_attention_run(untax_operator* op, const untax_const_matrix* partial_o,
                                          const untax_const_matrix* partial_lse,
                                          const untax_matrix* out, const untax_matrix* lse,
                                          void* stream) {
  return run<merging>(op, [&](untax::merge_partial_attention& it) {
    it.run(matrix_of("partial_o", partial_o), matrix_of("partial_lse", partial_lse),
           matrix_of("out", out), matrix_of("lse", lse), stream_of(stream));
  });
}
