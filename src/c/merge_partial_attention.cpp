#include <untax/c/merge_partial_attention.h>

#include "ops/merge_partial_attention/spec.hpp"
#include "planned.hpp"
#include "reading.hpp"

using namespace untax::c;

int32_t untax_merge_partial_attention_plan(untax_world* world,
                                           const untax_merge_partial_attention_problem* problem,
                                           const untax_merge_partial_attention_options* options,
                                           untax_operator** op) {
  return plan<untax::merge_partial_attention>(world, problem, options, op);
}

int32_t untax_merge_partial_attention_run(untax_operator* op, const untax_const_matrix* partial_o,
                                          const untax_const_matrix* partial_lse,
                                          const untax_matrix* out, const untax_matrix* lse,
                                          void* stream) {
  return run<untax::merge_partial_attention>(op, [&](untax::merge_partial_attention& attention) {
    attention.run(matrix_of("partial_o", partial_o), matrix_of("partial_lse", partial_lse),
                  matrix_of("out", out), matrix_of("lse", lse), stream_of(stream));
  });
}
