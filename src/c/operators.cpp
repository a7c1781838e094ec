#include <untax/untax.h>

#include "given.hpp"
#include "ops/operators.hpp"
#include "planned.hpp"
#include "reading.hpp"

// untax_NAME_plan, untax_NAME_run and untax_NAME_result of each operator. The functions of GEMMs
// and of collectives differ only in the name.

namespace untax::c {
namespace {

template <class Gemm>
std::int32_t run_gemm(untax_operator* op, const untax_const_matrix* a,
                      const untax_const_matrix* weights, const untax_matrix* c, void* stream) {
  return run<Gemm>(op, [&](Gemm& gemm) {
    const const_matrix left = matrix_of("a", a);
    const const_matrix right = matrix_of("weights", weights);
    if constexpr (requires { gemm.result(); }) {
      if (c == nullptr) return gemm.run(left, right, stream_of(stream));
    }
    gemm.run(left, right, matrix_of("c", c), stream_of(stream));
  });
}

template <class Gemm>
std::int32_t store_result(const untax_operator* op, untax_matrix* c) {
  return run<Gemm>(const_cast<untax_operator*>(op), [&](Gemm& gemm) {
    require(c, "c");
    *c = c_matrix(gemm.result());
  });
}

/// `in` may be null if the spec says that it is optional.
template <class Collective>
std::int32_t run_collective(untax_operator* op, const untax_const_array* in, const untax_array* out,
                            void* stream) {
  return run<Collective>(op, [&](Collective& collective) {
    const bool missing = in == nullptr && op->operands.front().is_optional();
    collective.run(missing ? const_array_view{} : array_of("in", in), array_of("out", out),
                   stream_of(stream));
  });
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

#define UNTAX_PLAN(name, options)                                                        \
  int32_t untax_##name##_plan(untax_world* world, const untax_##name##_problem* problem, \
                              const untax_##options* given, untax_operator** op) {       \
    return plan<untax::name>(world, problem, given, op);                                 \
  }

#define UNTAX_GEMM(name)                                                               \
  UNTAX_PLAN(name, operator_options)                                                   \
  int32_t untax_##name##_run(untax_operator* op, const untax_const_matrix* a,          \
                             const untax_const_matrix* weights, const untax_matrix* c, \
                             void* stream) {                                           \
    return run_gemm<untax::name>(op, a, weights, c, stream);                           \
  }

#define UNTAX_GEMM_RESULT(name)                                              \
  int32_t untax_##name##_result(const untax_operator* op, untax_matrix* c) { \
    return store_result<untax::name>(op, c);                                 \
  }

#define UNTAX_COLLECTIVE(name)                                                \
  UNTAX_PLAN(name, collective_options)                                        \
  int32_t untax_##name##_run(untax_operator* op, const untax_const_array* in, \
                             const untax_array* out, void* stream) {          \
    return run_collective<untax::name>(op, in, out, stream);                  \
  }

UNTAX_GEMM(all_gather_gemm)
UNTAX_GEMM(gemm_all_scatter)
UNTAX_GEMM_RESULT(gemm_all_scatter)
UNTAX_GEMM(gemm_reduce_scatter)
UNTAX_GEMM(gemm_all_reduce)
UNTAX_GEMM_RESULT(gemm_all_reduce)
UNTAX_COLLECTIVE(all_gather)
UNTAX_COLLECTIVE(reduce_scatter)
UNTAX_COLLECTIVE(all_reduce)
UNTAX_COLLECTIVE(all_to_all)
UNTAX_COLLECTIVE(broadcast)
UNTAX_PLAN(all_reduce_norm, operator_options)
UNTAX_PLAN(flash_decode, flash_decode_options)
UNTAX_PLAN(merge_partial_attention, merge_partial_attention_options)
UNTAX_PLAN(flash_attention, flash_attention_options)
UNTAX_PLAN(linear, linear_options)
UNTAX_PLAN(rope_append, rope_append_options)

int32_t untax_all_reduce_norm_run(untax_operator* op, const untax_norm_arguments* arguments,
                                  void* stream) {
  return run<untax::all_reduce_norm>(op, [&](untax::all_reduce_norm& norm) {
    const untax::norm_inputs inputs = inputs_of(arguments);
    const untax::norm_results results = results_of(arguments);
    const bool own = results.x == nullptr && results.out == nullptr;
    norm.run(inputs, own ? norm.result() : results, stream_of(stream));
  });
}

int32_t untax_all_reduce_norm_result(const untax_operator* op, void** x, void** out,
                                     float** scales) {
  return run<untax::all_reduce_norm>(const_cast<untax_operator*>(op),
                                     [&](untax::all_reduce_norm& norm) {
                                       require(x, "x");
                                       require(out, "out");
                                       const untax::norm_results result = norm.result();
                                       *x = result.x;
                                       *out = result.out;
                                       if (scales != nullptr) *scales = result.scales;
                                     });
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

int32_t untax_merge_partial_attention_run(untax_operator* op, const untax_const_matrix* partial_o,
                                          const untax_const_matrix* partial_lse,
                                          const untax_matrix* out, const untax_matrix* lse,
                                          void* stream) {
  return run<untax::merge_partial_attention>(op, [&](untax::merge_partial_attention& attention) {
    attention.run(matrix_of("partial_o", partial_o), matrix_of("partial_lse", partial_lse),
                  matrix_of("out", out), matrix_of("lse", lse), stream_of(stream));
  });
}

int32_t untax_flash_attention_run(untax_operator* op, const untax_attention_arguments* arguments,
                                  void* stream) {
  return run<untax::flash_attention>(op, [&](untax::flash_attention& attention) {
    attention.run(operands_of(arguments), stream_of(stream));
  });
}

int32_t untax_linear_run(untax_operator* op, const untax_linear_arguments* arguments,
                         void* stream) {
  return run<untax::linear>(
      op, [&](untax::linear& layer) { layer.run(operands_of(arguments), stream_of(stream)); });
}

int32_t untax_rope_append_run(untax_operator* op, const untax_rope_append_arguments* arguments,
                              void* stream) {
  return run<untax::rope_append>(op, [&](untax::rope_append& append) {
    append.run(operands_of(arguments), stream_of(stream));
  });
}
