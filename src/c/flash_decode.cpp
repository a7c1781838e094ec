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
  return plan<decoding>(
      world, problem, op,
      [&]() -> untax::flash_decode_problem {
        const auto p = taken(problem, "untax_flash_decode_problem");
        return {.batch = p.batch,
                .heads = p.heads,
                .kv_heads = p.kv_heads,
                .head_dim = p.head_dim,
                .keys = p.keys,
                .page_size = p.page_size,
                .pages = p.pages,
                .type = type_of("type", p.type),
                .partials = type_of("partials", p.partials),
                .scale = p.scale,
                .logit_cap = p.logit_cap};
      },
      [&]() -> untax::flash_decode_options {
        const auto o = taken_if_given(options, "untax_flash_decode_options");
        return {.how = pattern_of(o.pattern),
                .launch = launch_of(o.eager),
                .workers = o.workers,
                .senders = o.senders,
                .splits = o.splits};
      });
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
