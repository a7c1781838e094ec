#include <fmt/format.h>

#include <utility>

#include <untax/ops/collectives.hpp>

#include "ops/all_gather/protocol.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {
namespace {

gpu::collective_kernel kernels_of(const all_gather_problem& problem, const collective_plan& plan) {
  const gathered_parts parts{{problem.count, plan.world}};
  return exchange_code(gpu::messages_of(parts, plan.world, plan.rank), problem.type, plan);
}

}  // namespace

all_gather::all_gather(world& w, const all_gather_problem& problem,
                       const collective_options& options)
    : collective(w, need_of(problem, w.size()), options), problem_(problem) {
  const std::string text = fmt::format("count {}", problem.count);
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

std::int64_t all_gather::in_count(const all_gather_problem& problem, int world, int rank) {
  return sharding{problem.count, world}.of(rank).size;
}

std::int64_t all_gather::out_count(const all_gather_problem& problem, int /*world*/, int /*rank*/) {
  return problem.count;
}

void all_gather::run(const const_array_view& in, const array_view& out, stream_ref stream) {
  const std::int64_t count = count_of_run("out", out.count, problem_.count);
  const range own = sharding{count, plan().world}.of(plan().rank);
  check("in", in, own.size);
  check("out", as_const(out), count);
  check_apart(in, out, {true, own.begin});
  carry_out(in, out, count, stream);
}

}  // namespace untax
