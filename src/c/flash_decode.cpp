#include <untax/c/flash_decode.h>

#include "ops/flash_decode/spec.hpp"
#include "planned.hpp"
#include "reading.hpp"

using namespace untax::c;

int32_t untax_flash_decode_plan(untax_world* world, const untax_flash_decode_problem* problem,
                                const untax_flash_decode_options* options, untax_operator** op) {
  return plan<untax::flash_decode>(world, problem, options, op);
}

int32_t untax_flash_decode_run(untax_operator* op, const untax_const_matrix* q,
                               const untax_const_matrix* keys, const untax_const_matrix* values,
                               const int32_t* lengths, const int32_t* page_table,
                               const untax_matrix* out, void* stream) {
  return run<untax::flash_decode>(op, [&](untax::flash_decode& attention) {
    const untax::attention_shard cache{matrix_of("keys", keys), matrix_of("values", values),
                                       lengths, page_table};
    attention.run(matrix_of("q", q), cache, matrix_of("out", out), stream_of(stream));
  });
}
