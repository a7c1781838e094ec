#include <untax/c/gemm.h>

#include "ops/operators.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

/// Stores the operator's own result matrix in `c`. Throws `invalid_argument` if `c` is null.
template <class Op>
void store_result(const Op& gemm, untax_matrix* c) {
  require(c, "c");
  const matrix result = gemm.result();
  *c = {result.data, result.rows, result.cols, result.stride,
        static_cast<std::int32_t>(result.type)};
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_gather_gemm_plan(untax_world* world, const untax_all_gather_gemm_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<untax::all_gather_gemm>(world, problem, options, op);
}

int32_t untax_all_gather_gemm_run(untax_operator* op, const untax_const_matrix* a,
                                  const untax_const_matrix* weights, const untax_matrix* c,
                                  void* stream) {
  return run<untax::all_gather_gemm>(op, [&](untax::all_gather_gemm& gemm) {
    gemm.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c),
             stream_of(stream));
  });
}

int32_t untax_gemm_all_scatter_plan(untax_world* world,
                                    const untax_gemm_all_scatter_problem* problem,
                                    const untax_operator_options* options, untax_operator** op) {
  return plan<untax::gemm_all_scatter>(world, problem, options, op);
}

int32_t untax_gemm_all_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                   const untax_const_matrix* weights, const untax_matrix* c,
                                   void* stream) {
  return run<untax::gemm_all_scatter>(op, [&](untax::gemm_all_scatter& gemm) {
    if (c == nullptr)
      return gemm.run(matrix_of("a", a), matrix_of("weights", weights), stream_of(stream));
    gemm.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c),
             stream_of(stream));
  });
}

int32_t untax_gemm_all_scatter_result(const untax_operator* op, untax_matrix* c) {
  return run<untax::gemm_all_scatter>(
      const_cast<untax_operator*>(op),
      [&](untax::gemm_all_scatter& gemm) { store_result(gemm, c); });
}

int32_t untax_gemm_reduce_scatter_plan(untax_world* world,
                                       const untax_gemm_reduce_scatter_problem* problem,
                                       const untax_operator_options* options, untax_operator** op) {
  return plan<untax::gemm_reduce_scatter>(world, problem, options, op);
}

int32_t untax_gemm_reduce_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                      const untax_const_matrix* weights, const untax_matrix* c,
                                      void* stream) {
  return run<untax::gemm_reduce_scatter>(op, [&](untax::gemm_reduce_scatter& gemm) {
    gemm.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c),
             stream_of(stream));
  });
}

int32_t untax_gemm_all_reduce_plan(untax_world* world, const untax_gemm_all_reduce_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<untax::gemm_all_reduce>(world, problem, options, op);
}

int32_t untax_gemm_all_reduce_run(untax_operator* op, const untax_const_matrix* a,
                                  const untax_const_matrix* weights, const untax_matrix* c,
                                  void* stream) {
  return run<untax::gemm_all_reduce>(op, [&](untax::gemm_all_reduce& gemm) {
    if (c == nullptr)
      return gemm.run(matrix_of("a", a), matrix_of("weights", weights), stream_of(stream));
    gemm.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c),
             stream_of(stream));
  });
}

int32_t untax_gemm_all_reduce_result(const untax_operator* op, untax_matrix* c) {
  return run<untax::gemm_all_reduce>(const_cast<untax_operator*>(op),
                                     [&](untax::gemm_all_reduce& gemm) { store_result(gemm, c); });
}
