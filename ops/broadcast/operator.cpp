#include <fmt/format.h>

#include <utility>

#include <untax/core/error.hpp>
#include <untax/ops/collectives.hpp>

#include "ops/broadcast/protocol.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {
namespace {

const broadcast_problem& checked(const broadcast_problem& problem, int world, int rank) {
  if (problem.root >= 0 && problem.root < world) return problem;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: broadcast: root is {}; it has to be between 0 and {}", rank,
                          problem.root, world - 1));
}

gpu::collective_kernel kernels_of(const broadcast_problem& problem, const collective_plan& plan) {
  if (plan.phases == 2) return relay_code(problem.count, problem.type, problem.root, plan);
  const root_parts parts{problem.count, problem.root};
  return exchange_code(gpu::messages_of(parts, plan.world, plan.rank), problem.type, plan);
}

}  // namespace

broadcast::broadcast(world& w, const broadcast_problem& problem, const collective_options& options)
    : collective(w, need_of(checked(problem, w.size(), w.rank()), w.size()), options),
      problem_(problem) {
  const std::string text = fmt::format("count {}, root {}", problem.count, problem.root);
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

std::int64_t broadcast::in_count(const broadcast_problem& problem, int /*world*/, int /*rank*/) {
  return problem.count;
}

std::int64_t broadcast::out_count(const broadcast_problem& problem, int /*world*/, int /*rank*/) {
  return problem.count;
}

void broadcast::run(const const_array_view& in, const array_view& out, stream_ref stream) {
  const std::int64_t count = count_of_run("out", out.count, problem_.count);
  check("out", as_const(out), count);
  if (plan().rank == problem_.root) {
    check("in", in, count);
    check_apart(in, out, {true, 0});
  }
  carry_out(plan().rank == problem_.root ? in : const_array_view(), out, count, stream);
}

}  // namespace untax
