#include <untax/c/gemm.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/gemm_all_reduce.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>

#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

std::vector<operand_size> three(const extent& a, const extent& weights, const extent& c,
                                dtype type) {
  return {{"a", a.rows, a.cols, type},
          {"weights", weights.rows, weights.cols, type},
          {"c", c.rows, c.cols, type}};
}

struct gathering {
  static constexpr const char* name = "all_gather_gemm";
  using op = all_gather_gemm;
  using problem = all_gather_gemm_problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    return three(op::a_shard(p, world, rank), {p.n, p.k}, {p.m, p.n}, p.type);
  }
};

struct scattering {
  static constexpr const char* name = "gemm_all_scatter";
  using op = gemm_all_scatter;
  using problem = gemm_all_scatter_problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    return three({p.m, p.k}, op::weights_shard(p, world, rank), {p.m, p.n}, p.type);
  }
};

struct reducing {
  static constexpr const char* name = "gemm_reduce_scatter";
  using op = gemm_reduce_scatter;
  using problem = gemm_reduce_scatter_problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    const std::int64_t k = op::k_shard(p, world, rank);
    return three({p.m, k}, {p.n, k}, op::c_shard(p, world, rank), p.type);
  }
};

struct summing {
  static constexpr const char* name = "gemm_all_reduce";
  using op = gemm_all_reduce;
  using problem = gemm_all_reduce_problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    const std::int64_t k = op::k_shard(p, world, rank);
    return three({p.m, k}, {p.n, k}, {p.m, p.n}, p.type);
  }
};

/// Stores the operator's own result matrix in `c`. Throws `invalid_argument` if `c` is null.
template <class Op>
void tell_result(const Op& it, untax_matrix* c) {
  require(c, "c");
  const matrix result = it.result();
  *c = {result.data, result.rows, result.cols, result.stride,
        static_cast<std::int32_t>(result.type)};
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_gather_gemm_plan(untax_world* world, const untax_all_gather_gemm_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<gathering>(world, problem, options, op);
}

int32_t untax_all_gather_gemm_run(untax_operator* op, const untax_const_matrix* a,
                                  const untax_const_matrix* weights, const untax_matrix* c,
                                  void* stream) {
  return run<gathering>(op, [&](untax::all_gather_gemm& it) {
    it.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c), stream_of(stream));
  });
}

int32_t untax_gemm_all_scatter_plan(untax_world* world,
                                    const untax_gemm_all_scatter_problem* problem,
                                    const untax_operator_options* options, untax_operator** op) {
  return plan<scattering>(world, problem, options, op);
}

int32_t untax_gemm_all_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                   const untax_const_matrix* weights, const untax_matrix* c,
                                   void* stream) {
  return run<scattering>(op, [&](untax::gemm_all_scatter& it) {
    if (c == nullptr)
      return it.run(matrix_of("a", a), matrix_of("weights", weights), stream_of(stream));
    it.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c), stream_of(stream));
  });
}

int32_t untax_gemm_all_scatter_result(const untax_operator* op, untax_matrix* c) {
  return run<scattering>(const_cast<untax_operator*>(op),
                         [&](untax::gemm_all_scatter& it) { tell_result(it, c); });
}

int32_t untax_gemm_reduce_scatter_plan(untax_world* world,
                                       const untax_gemm_reduce_scatter_problem* problem,
                                       const untax_operator_options* options, untax_operator** op) {
  return plan<reducing>(world, problem, options, op);
}

int32_t untax_gemm_reduce_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                      const untax_const_matrix* weights, const untax_matrix* c,
                                      void* stream) {
  return run<reducing>(op, [&](untax::gemm_reduce_scatter& it) {
    it.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c), stream_of(stream));
  });
}

int32_t untax_gemm_all_reduce_plan(untax_world* world, const untax_gemm_all_reduce_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<summing>(world, problem, options, op);
}

int32_t untax_gemm_all_reduce_run(untax_operator* op, const untax_const_matrix* a,
                                  const untax_const_matrix* weights, const untax_matrix* c,
                                  void* stream) {
  return run<summing>(op, [&](untax::gemm_all_reduce& it) {
    if (c == nullptr)
      return it.run(matrix_of("a", a), matrix_of("weights", weights), stream_of(stream));
    it.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c), stream_of(stream));
  });
}

int32_t untax_gemm_all_reduce_result(const untax_operator* op, untax_matrix* c) {
  return run<summing>(const_cast<untax_operator*>(op),
                      [&](untax::gemm_all_reduce& it) { tell_result(it, c); });
}
