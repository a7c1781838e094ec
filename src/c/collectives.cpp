#include <untax/c/collectives.h>

#include "ops/operators.hpp"
#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

template <class Collective>
std::int32_t run_arrays(untax_operator* op, const untax_const_array* in, const untax_array* out,
                        void* stream) {
  return run<Collective>(op, [&](Collective& collective) {
    collective.run(array_of("in", in), array_of("out", out), stream_of(stream));
  });
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_gather_plan(untax_world* world, const untax_all_gather_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<untax::all_gather>(world, problem, options, op);
}

int32_t untax_all_gather_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_arrays<untax::all_gather>(op, in, out, stream);
}

int32_t untax_reduce_scatter_plan(untax_world* world, const untax_reduce_scatter_problem* problem,
                                  const untax_collective_options* options, untax_operator** op) {
  return plan<untax::reduce_scatter>(world, problem, options, op);
}

int32_t untax_reduce_scatter_run(untax_operator* op, const untax_const_array* in,
                                 const untax_array* out, void* stream) {
  return run_arrays<untax::reduce_scatter>(op, in, out, stream);
}

int32_t untax_all_reduce_plan(untax_world* world, const untax_all_reduce_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<untax::all_reduce>(world, problem, options, op);
}

int32_t untax_all_reduce_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_arrays<untax::all_reduce>(op, in, out, stream);
}

int32_t untax_all_to_all_plan(untax_world* world, const untax_all_to_all_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<untax::all_to_all>(world, problem, options, op);
}

int32_t untax_all_to_all_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_arrays<untax::all_to_all>(op, in, out, stream);
}

int32_t untax_broadcast_plan(untax_world* world, const untax_broadcast_problem* problem,
                             const untax_collective_options* options, untax_operator** op) {
  return plan<untax::broadcast>(world, problem, options, op);
}

int32_t untax_broadcast_run(untax_operator* op, const untax_const_array* in, const untax_array* out,
                            void* stream) {
  return run<untax::broadcast>(op, [&](untax::broadcast& collective) {
    const auto given = in == nullptr ? untax::const_array_view{} : array_of("in", in);
    collective.run(given, array_of("out", out), stream_of(stream));
  });
}
