#include <fmt/format.h>

#include <memory>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/ops/collectives.hpp>

#include "ops/all_to_all/protocol.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {
namespace {

/// Refuses a wrong number of counts, and counts that are not possible.
const all_to_all_problem& checked(const all_to_all_problem& problem, int world, int rank) {
  if (problem.counts.empty()) return problem;
  const auto pairs = static_cast<std::size_t>(world) * static_cast<std::size_t>(world);
  if (problem.counts.size() != pairs) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: all_to_all: counts has {} entries; {} ranks need {}", rank,
                            problem.counts.size(), world, pairs));
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto ranks = static_cast<std::size_t>(world);
    require_count("all_to_all", rank,
                  fmt::format("the part of rank {} for rank {}", i / ranks, i % ranks),
                  problem.counts[i]);
  }
  return problem;
}

std::string text_of(const all_to_all_problem& problem) {
  if (problem.counts.empty()) return fmt::format("count {}", problem.count);
  return fmt::format("counts {}", fmt::join(problem.counts, " "));
}

gpu::collective_kernel kernels_of(const all_to_all_problem& problem, const collective_plan& plan) {
  const auto code = [&](const auto& parts) {
    return exchange_code(gpu::messages_of(parts, plan.world, plan.rank), problem.type, plan);
  };
  if (problem.counts.empty()) return code(equal_parts{problem.count});
  return code(unequal_parts{problem.counts.data(), plan.world});
}

}  // namespace

all_to_all::all_to_all(world& w, const all_to_all_problem& problem,
                       const collective_options& options)
    : collective(w, need_of(checked(problem, w.size(), w.rank()), w.size()), options),
      problem_(problem) {
  if (options.varying_count) {
    if (!problem.counts.empty()) {
      throw error(
          errc::invalid_argument,
          fmt::format("rank {}: all_to_all: option varying_count is for equal parts; counts "
                      "has {} entries",
                      w.rank(), problem.counts.size()));
    }
    start(w, text_of(problem), counted(w, problem, options, kernels_of), options);
    return;
  }
  const auto kept = std::make_shared<const all_to_all_problem>(problem);
  with_protocol_for(*kept, plan(), [&](auto protocol) {
    start(
        w, text_of(problem), program(std::move(protocol)),
        [&] { return kernels_of(problem_, plan()); }, options, kept);
  });
}

std::int64_t all_to_all::part(const all_to_all_problem& problem, int world, int from, int to) {
  if (problem.counts.empty()) return problem.count;
  const auto ranks = static_cast<std::size_t>(world);
  if (problem.counts.size() != ranks * ranks) {
    throw error(errc::invalid_argument,
                fmt::format("all_to_all: counts has {} entries; {} ranks need {}",
                            problem.counts.size(), world, ranks * ranks));
  }
  return problem.counts[static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to)];
}

std::int64_t all_to_all::in_count(const all_to_all_problem& problem, int world, int rank) {
  std::int64_t sum = 0;
  for (int to = 0; to < world; ++to) sum += part(problem, world, rank, to);
  return sum;
}

std::int64_t all_to_all::out_count(const all_to_all_problem& problem, int world, int rank) {
  std::int64_t sum = 0;
  for (int from = 0; from < world; ++from) sum += part(problem, world, from, rank);
  return sum;
}

void all_to_all::run(const const_array_view& in, const array_view& out, stream_ref stream) {
  const std::int64_t count = count_of_run("in", in.count / plan().world, problem_.count);
  all_to_all_problem problem = problem_;
  problem.count = count;
  check("in", in, in_count(problem, plan().world, plan().rank));
  check("out", as_const(out), out_count(problem, plan().world, plan().rank));
  check_apart(in, out, {});
  carry_out(in, out, count, stream);
}

}  // namespace untax
