#include <fmt/format.h>

#include <utility>

#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/reduce_scatter/protocol.hpp"

namespace untax {
namespace {

gpu::collective_kernel kernels_of(const reduce_scatter_problem& problem,
                                  const collective_plan& plan) {
  return reduction_code(problem.count, problem.type, problem.how, reduce_target::owner, plan);
}

}  // namespace

reduce_scatter::reduce_scatter(world& w, const reduce_scatter_problem& problem,
                               const collective_options& options)
    : collective(w, need_of(problem, w.size()), options), problem_(problem) {
  const std::string text = fmt::format("count {}, {}", problem.count, name_of(problem.how));
  if (options.varying_count) {
    start(w, text, counted(w, problem, options, kernels_of), options);
    return;
  }
  with_protocol_for(problem_, plan(), [&](auto protocol) {
    start(
        w, text, program(std::move(protocol)), [&] { return kernels_of(problem_, plan()); },
        options);
  });
}

std::int64_t reduce_scatter::in_count(const reduce_scatter_problem& problem, int /*world*/,
                                      int /*rank*/) {
  return problem.count;
}

std::int64_t reduce_scatter::out_count(const reduce_scatter_problem& problem, int world, int rank) {
  return sharding{problem.count, world}.of(rank).size;
}

void reduce_scatter::run(const const_array_view& in, const array_view& out, stream_ref stream) {
  const std::int64_t count = count_of_run("in", in.count, problem_.count);
  const range own = sharding{count, plan().world}.of(plan().rank);
  check("in", in, count);
  check("out", as_const(out), own.size);
  check_apart(in, out, {true, -own.begin});
  carry_out(in, out, count, stream);
}

}  // namespace untax
