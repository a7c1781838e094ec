#include <untax/c/all_reduce_norm.h>

#include <untax/ops/all_reduce_norm.hpp>

#include "ops/all_reduce_norm/planning.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

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
  return plan<normalising>(world, problem, options, op);
}

int32_t untax_all_reduce_norm_run(untax_operator* op, const untax_norm_arguments* arguments,
                                  void* stream) {
  return run<normalising>(op, [&](untax::all_reduce_norm& it) {
    const untax::norm_inputs inputs = inputs_of(arguments);
    const untax::norm_results results = results_of(arguments);
    const bool own = results.x == nullptr && results.out == nullptr;
    it.run(inputs, own ? it.result() : results, stream_of(stream));
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
