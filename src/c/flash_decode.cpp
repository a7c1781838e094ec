#include <untax/c/flash_decode.h>

#include <untax/ops/flash_decode.hpp>

#include "ops/flash_decode/planning.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

struct decoding {
  static constexpr const char* name = flash_decode_name.data();
  using op = flash_decode;
  using problem = flash_decode_problem;
  static std::vector<operand_size> operands(const problem& p, int /*world*/, int /*rank*/) {
    const extent cache = cache_extent(p);
    const std::int64_t rows = p.batch * p.heads;
    return {{"q", rows, p.head_dim, p.type},
            {"keys", cache.rows, cache.cols, p.type},
            {"values", cache.rows, cache.cols, p.type},
            {"out", rows, p.head_dim, p.type}};
  }
};

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_flash_decode_plan(untax_world* world, const untax_flash_decode_problem* problem,
                                const untax_flash_decode_options* options, untax_operator** op) {
  return plan<decoding>(world, problem, options, op);
}

int32_t untax_flash_decode_run(untax_operator* op, const untax_const_matrix* q,
                               const untax_const_matrix* keys, const untax_const_matrix* values,
                               const int32_t* lengths, const int32_t* page_table,
                               const untax_matrix* out, void* stream) {
  return run<decoding>(op, [&](untax::flash_decode& it) {
    const untax::attention_shard cache{matrix_of("keys", keys), matrix_of("values", values),
                                       lengths, page_table};
    it.run(matrix_of("q", q), cache, matrix_of("out", out), stream_of(stream));
  });
}
