#include <untax/c/gemm.h>

#include <untax/ops/all_gather_gemm.hpp>
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

operator_options options_of(const untax_operator_options* given) {
  const auto o = taken_if_given(given, "untax_operator_options");
  return {.how = pattern_of(o.pattern),
          .move = o.pull != 0 ? direction::pull : direction::push,
          .launch = launch_of(o.eager),
          .workers = o.workers,
          .senders = o.senders,
          .constant_weights = o.constant_weights != 0,
          .tile_m = o.tile_m,
          .tile_n = o.tile_n,
          .panel_k = o.panel_k};
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_gather_gemm_plan(untax_world* world, const untax_all_gather_gemm_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<gathering>(
      world, problem, op,
      [&]() -> untax::all_gather_gemm_problem {
        const auto p = taken(problem, "untax_all_gather_gemm_problem");
        return {.m = p.m,
                .n = p.n,
                .k = p.k,
                .type = type_of("type", p.type),
                .gather = p.gather_k != 0 ? untax::gather_axis::k : untax::gather_axis::rows};
      },
      [&] { return options_of(options); });
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
  return plan<scattering>(
      world, problem, op,
      [&]() -> untax::gemm_all_scatter_problem {
        const auto p = taken(problem, "untax_gemm_all_scatter_problem");
        return {.m = p.m, .n = p.n, .k = p.k, .type = type_of("type", p.type)};
      },
      [&] { return options_of(options); });
}

int32_t untax_gemm_all_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                   const untax_const_matrix* weights, const untax_matrix* c,
                                   void* stream) {
  return run<scattering>(op, [&](untax::gemm_all_scatter& it) {
    const untax::matrix result = c == nullptr ? it.result() : matrix_of("c", c);
    it.run(matrix_of("a", a), matrix_of("weights", weights), result, stream_of(stream));
  });
}

int32_t untax_gemm_all_scatter_result(const untax_operator* op, untax_matrix* c) {
  return run<scattering>(const_cast<untax_operator*>(op), [&](untax::gemm_all_scatter& it) {
    require(c, "c");
    const untax::matrix result = it.result();
    *c = {result.data, result.rows, result.cols, result.stride,
          static_cast<std::int32_t>(result.type)};
  });
}

int32_t untax_gemm_reduce_scatter_plan(untax_world* world,
                                       const untax_gemm_reduce_scatter_problem* problem,
                                       const untax_operator_options* options, untax_operator** op) {
  return plan<reducing>(
      world, problem, op,
      [&]() -> untax::gemm_reduce_scatter_problem {
        const auto p = taken(problem, "untax_gemm_reduce_scatter_problem");
        return {.m = p.m,
                .n = p.n,
                .k = p.k,
                .type = type_of("type", p.type),
                .partials = type_of("partials", p.partials)};
      },
      [&] { return options_of(options); });
}

int32_t untax_gemm_reduce_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                      const untax_const_matrix* weights, const untax_matrix* c,
                                      void* stream) {
  return run<reducing>(op, [&](untax::gemm_reduce_scatter& it) {
    if (stream != nullptr) {
      throw untax::error(untax::errc::unsupported,
                         "gemm_reduce_scatter runs in worlds of the host, which have no streams; "
                         "pass NULL");
    }
    it.run(matrix_of("a", a), matrix_of("weights", weights), matrix_of("c", c));
  });
}
