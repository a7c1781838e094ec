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
  return plan<merging>(world, problem, options, op);
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
