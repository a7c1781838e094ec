#include <untax/c/all_reduce_norm.h>

#include "given.hpp"
#include "ops/all_reduce_norm/spec.hpp"
#include "planned.hpp"
#include "reading.hpp"

using namespace untax::c;

int32_t untax_all_reduce_norm_plan(untax_world* world, const untax_all_reduce_norm_problem* problem,
                                   const untax_operator_options* options, untax_operator** op) {
  return plan<untax::all_reduce_norm>(world, problem, options, op);
}

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
