#include <untax/c/all_reduce_norm.h>

#include <untax/ops/all_reduce_norm.hpp>

#include "gemm_options.hpp"
#include "ops/all_reduce_norm/planning.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

/// The default epsilon. A problem whose epsilon is 0 gets it.
constexpr float usual_epsilon = all_reduce_norm_problem{}.epsilon;

struct normalising {
  static constexpr const char* name = all_reduce_norm_name.data();
  using op = all_reduce_norm;
  using problem = all_reduce_norm_problem;
  static std::vector<operand_size> operands(const problem& p, int /*world*/, int /*rank*/) {
    return {{"in", p.tokens, p.hidden, p.type},
            {"residual", p.tokens, p.hidden, p.type},
            {"weight", 1, p.hidden, p.type},
            {"x", p.tokens, p.hidden, p.type}};
  }
};

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_reduce_norm_plan(untax_world* world, const untax_all_reduce_norm_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<normalising>(
      world, problem, op,
      [&]() -> untax::all_reduce_norm_problem {
        const auto p = taken(problem, "untax_all_reduce_norm_problem");
        return {.tokens = p.tokens,
                .hidden = p.hidden,
                .type = type_of("type", p.type),
                .output = chosen("output", p.output, untax::norm_output::e4m3_per_token),
                .epsilon = p.epsilon == 0 ? usual_epsilon : p.epsilon};
      },
      [&] { return options_of(options); });
}

int32_t untax_all_reduce_norm_run(untax_operator* op, const untax_norm_arguments* arguments,
                                  void* stream) {
  return run<normalising>(op, [&](untax::all_reduce_norm& it) {
    require(arguments, "arguments");
    const auto a = taken(arguments, "untax_norm_arguments");
    const bool own = a.x == nullptr && a.out == nullptr;
    it.run({matrix_of("in", a.in), matrix_of("residual", a.residual), a.weight,
            a.scale == 0 ? 1 : a.scale},
           own ? it.result() : untax::norm_results{a.x, a.out, a.scales}, stream_of(stream));
  });
}

int32_t untax_all_reduce_norm_result(const untax_operator* op, void** x, void** out,
                                     float** scales) {
  return run<normalising>(const_cast<untax_operator*>(op), [&](untax::all_reduce_norm& it) {
    require(x, "x");
    require(out, "out");
    const untax::norm_results result = it.result();
    *x = result.x;
    *out = result.out;
    if (scales != nullptr) *scales = result.scales;
  });
}
