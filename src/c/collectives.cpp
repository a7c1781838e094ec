#include <untax/c/collectives.h>

#include <untax/ops/collectives.hpp>

#include "planned.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

/// The traits that all collectives have in common.
template <class Operator, class Problem>
struct moving {
  using op = Operator;
  using problem = Problem;
  static std::vector<operand_size> operands(const problem& p, int world, int rank) {
    return {{"in", 1, op::in_count(p, world, rank), p.type},
            {"out", 1, op::out_count(p, world, rank), p.type}};
  }
};
struct gathering : moving<all_gather, all_gather_problem> {
  static constexpr const char* name = "all_gather";
};
struct scattering : moving<reduce_scatter, reduce_scatter_problem> {
  static constexpr const char* name = "reduce_scatter";
};
struct reducing : moving<all_reduce, all_reduce_problem> {
  static constexpr const char* name = "all_reduce";
};
struct exchanging : moving<all_to_all, all_to_all_problem> {
  static constexpr const char* name = "all_to_all";
};
struct casting : moving<broadcast, broadcast_problem> {
  static constexpr const char* name = "broadcast";
};

template <class Traits>
std::int32_t run_one(untax_operator* op, const untax_const_array* in, const untax_array* out,
                     void* stream) {
  return run<Traits>(op, [&](typename Traits::op& it) {
    it.run(array_of("in", in), array_of("out", out), stream_of(stream));
  });
}

}  // namespace
}  // namespace untax::c

using namespace untax::c;

int32_t untax_all_gather_plan(untax_world* world, const untax_all_gather_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<gathering>(world, problem, options, op);
}

int32_t untax_all_gather_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_one<gathering>(op, in, out, stream);
}

int32_t untax_reduce_scatter_plan(untax_world* world, const untax_reduce_scatter_problem* problem,
                                  const untax_collective_options* options, untax_operator** op) {
  return plan<scattering>(world, problem, options, op);
}

int32_t untax_reduce_scatter_run(untax_operator* op, const untax_const_array* in,
                                 const untax_array* out, void* stream) {
  return run_one<scattering>(op, in, out, stream);
}

int32_t untax_all_reduce_plan(untax_world* world, const untax_all_reduce_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<reducing>(world, problem, options, op);
}

int32_t untax_all_reduce_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_one<reducing>(op, in, out, stream);
}

int32_t untax_all_to_all_plan(untax_world* world, const untax_all_to_all_problem* problem,
                              const untax_collective_options* options, untax_operator** op) {
  return plan<exchanging>(world, problem, options, op);
}

int32_t untax_all_to_all_run(untax_operator* op, const untax_const_array* in,
                             const untax_array* out, void* stream) {
  return run_one<exchanging>(op, in, out, stream);
}

int32_t untax_broadcast_plan(untax_world* world, const untax_broadcast_problem* problem,
                             const untax_collective_options* options, untax_operator** op) {
  return plan<casting>(world, problem, options, op);
}

int32_t untax_broadcast_run(untax_operator* op, const untax_const_array* in, const untax_array* out,
                            void* stream) {
  return run<casting>(op, [&](untax::broadcast& it) {
    const auto given = in == nullptr ? untax::const_array_view{} : array_of("in", in);
    it.run(given, array_of("out", out), stream_of(stream));
  });
}
