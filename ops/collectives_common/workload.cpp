#include "ops/collectives_common/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/core/half.hpp>

#include "ops/common/deviation.hpp"

namespace untax {
namespace {

float rounded(dtype type, float value) {
  switch (type) {
    case dtype::f16:
      return static_cast<float>(f16(value));
    case dtype::bf16:
      return static_cast<float>(bf16(value));
    default:
      return value;
  }
}

/// The number of elements of the largest input or result of any rank.
std::int64_t largest_of(
    const std::function<std::int64_t(const collective_problem&, int world, int rank)>& count,
    const collective_problem& problem, int ranks) {
  std::int64_t most = 1;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, count(problem, ranks, rank));
  return most;
}

/// Bytes of symmetric heap that a plan takes, on the host or on GPUs.
std::size_t heap_of(const collective_entry& entry, const collective_problem& problem,
                    collective_options options, pattern how, int ranks, memory_kind memory) {
  options.how = how;
  const auto& plan = memory == memory_kind::cuda ? entry.device_plan : entry.plan;
  return heap_for(plan(problem, ranks, 0, options), problem.type);
}

/// The need of the rank that takes most, on GPUs.
memory_need device_need(const collective_entry& entry, const collective_problem& problem,
                        const collective_options& options, int ranks,
                        const std::vector<pattern>& patterns) {
  const auto elements = static_cast<double>(largest_of(entry.in_count, problem, ranks) +
                                            largest_of(entry.out_count, problem, ranks)) *
                        static_cast<double>(size_of(problem.type));
  memory_need need;
  for (const pattern how : patterns) {
    (options.direct ? need.heap_of_rank : need.activations) += elements;
    need.heap_of_rank +=
        static_cast<double>(heap_of(entry, problem, options, how, ranks, memory_kind::cuda));
  }
  need.heaps = need.heap_of_rank;
  return need;
}

/// The need of all ranks on the host. Checks compute one element after the other.
memory_need host_need(const collective_entry& entry, const collective_problem& problem,
                      const collective_options& options, int ranks,
                      const std::vector<pattern>& patterns) {
  const auto size = static_cast<double>(size_of(problem.type));
  memory_need all;
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const double elements = static_cast<double>(entry.in_count(problem, ranks, rank)) +
                            static_cast<double>(entry.out_count(problem, ranks, rank));
    all.activations += size * elements * static_cast<double>(patterns.size());
    most = std::max(most, size * elements);
  }
  double heap = 0;
  for (const pattern how : patterns) {
    heap += static_cast<double>(heap_of(entry, problem, options, how, ranks, memory_kind::host));
  }
  all.heaps = heap * ranks;
  // Heaps of plans are upper bounds. A lower bound is the memory of the elements.
  if (options.direct) all.heap_of_rank = most * static_cast<double>(patterns.size());
  return all;
}

/// The largest relative error of a correct result; only sums are rounded.
double tolerance_of(const collective_entry& entry, const collective_problem& problem) {
  if (!entry.combines || problem.how != reduction::sum) return 0;
  return problem.type == dtype::f32 ? 1e-5 : problem.type == dtype::f16 ? 6e-4 : 4e-3;
}

matrix as_row(const array_view& e) { return {e.data, e.type, 1, e.count}; }

}  // namespace

collective_workload::collective_workload(world& w, const collective_entry& entry,
                                         const collective_problem& problem,
                                         const collective_options& options, std::uint64_t seed)
    : entry_(&entry),
      problem_(problem),
      ranks_(&w.stable_view()),
      direct_(options.direct),
      world_(w.size()),
      rank_(w.rank()),
      in_memory_(make_memory(entry.in_count)),
      out_memory_(make_memory(entry.out_count)),
      in_(in_memory_.elements(problem.type, entry.in_count(problem, world_, rank_))),
      out_(out_memory_.elements(problem.type, entry.out_count(problem, world_, rank_))),
      host_in_(in_memory_.on_host(problem.type, in_.count)),
      host_out_(out_memory_.on_host(problem.type, out_.count)),
      op_(entry.make(w, problem, options)) {
  refresh(seed);
  poison_result();
  // No rank may run while another one still allocates GPU memory.
  if (in_memory_.on_gpu) w.barrier();
}

collective_workload::~collective_workload() = default;

array_view collective_workload::caller_memory::elements(dtype type, std::int64_t count) {
  return {shared ? shared->local() : on_gpu ? device.data() : own.data(), type, count};
}

array_view collective_workload::caller_memory::on_host(dtype type, std::int64_t count) {
  return {shared && !on_gpu ? shared->local() : own.data(), type, count};
}

collective_workload::caller_memory collective_workload::make_memory(
    const count_of_rank& count) const {
  caller_memory made;
  made.on_gpu = ranks_->memory() == memory_kind::cuda;
  if (direct_) {
    const auto most = static_cast<std::size_t>(largest_of(count, problem_, world_));
    made.shared = ranks_->allocate_owned<std::byte>(most * size_of(problem_.type), "elements");
    if (made.on_gpu) made.own.resize(most * size_of(problem_.type));
  } else {
    const auto mine = static_cast<std::size_t>(count(problem_, world_, rank_));
    made.own.resize(mine * size_of(problem_.type));
    if (made.on_gpu) made.device = bulk::scratch(made.own.size());
  }
  return made;
}

void collective_workload::refresh(std::uint64_t seed) {
  values_.seed = seed;
  values_.fill(as_row(host_in_), {rank_, 1}, {0, in_.count});
  if (in_memory_.on_gpu) bulk::copy_and_wait(in_.data, host_in_.data, in_.size_bytes());
}

void collective_workload::poison_result() {
  poison(as_row(host_out_));
  if (out_memory_.on_gpu) bulk::copy_and_wait(out_.data, host_out_.data, out_.size_bytes());
}

void collective_workload::fetch_result() const {
  if (out_memory_.on_gpu) bulk::copy_and_wait(host_out_.data, out_.data, out_.size_bytes());
}

float collective_workload::input(int rank, std::int64_t i) const {
  return rounded(problem_.type, values_.at(rank, i));
}

float collective_workload::result_at(std::int64_t i) const {
  switch (problem_.type) {
    case dtype::f16:
      return static_cast<float>(static_cast<const f16*>(host_out_.data)[i]);
    case dtype::bf16:
      return static_cast<float>(static_cast<const bf16*>(host_out_.data)[i]);
    default:
      return static_cast<const float*>(host_out_.data)[i];
  }
}

template <class T>
T collective_workload::reference(std::int64_t i) const {
  const origin source = entry_->origin_of(problem_, world_, rank_, i);
  if (source.from >= 0) return static_cast<T>(input(source.from, source.index));
  auto all = static_cast<T>(input(0, source.index));
  for (int rank = 1; rank < world_; ++rank)
    all = combined(problem_.how, all, static_cast<T>(input(rank, source.index)));
  return all;
}

double collective_workload::relative_error() const {
  fetch_result();
  constexpr std::int64_t row = 4096;
  // Sums are added in fp32 and rounded once.
  const double tolerance = tolerance_of(*entry_, problem_);
  const double share = tolerance > 0 ? roundoff_of(problem_.type) + addition_share(world_) : 0;
  deviation found(tolerance);
  std::vector<double> is;
  std::vector<double> should;
  for (std::int64_t i = 0; i < out_.count; ++i) {
    is.push_back(static_cast<double>(result_at(i)));
    should.push_back(reference<double>(i));
    if (i % row != row - 1 && i != out_.count - 1) continue;
    found.add_row(std::span<const double>(is), should, share, entry_->combines ? world_ : 1);
    is.clear();
    should.clear();
  }
  return found.relative_error();
}

std::int64_t collective_workload::wrong_bits() const {
  fetch_result();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < out_.count; ++i) {
    const float right = rounded(problem_.type, reference<float>(i));
    wrong +=
        std::bit_cast<std::uint32_t>(right) == std::bit_cast<std::uint32_t>(result_at(i)) ? 0 : 1;
  }
  return wrong;
}

std::string describe(const collective_entry& entry, const collective_problem& problem) {
  std::string text =
      fmt::format("{}, count {}, {}", entry.name, problem.count, name_of(problem.type));
  if (entry.combines) text += fmt::format(", {}", name_of(problem.how));
  if (entry.has_root) text += fmt::format(", root {}", problem.root);
  if (problem.uneven) text += ", unequal parts";
  return text;
}

trial_subject subject_of(const collective_entry& entry, const collective_problem& problem,
                         const collective_options& options, memory_kind memory) {
  trial_subject subject;
  subject.name = entry.name;
  subject.description = describe(entry, problem);
  subject.memory = memory;
  subject.facts = {{"count", problem.count}, {"dtype", std::string(name_of(problem.type))}};
  if (options.direct) {
    subject.patterns = {pattern::fused_sequential};
  } else {
    subject.patterns = {std::begin(collective_patterns), std::end(collective_patterns)};
  }
  subject.tolerance = tolerance_of(entry, problem);
  subject.rate_unit = "GB/s";
  subject.rate_name = "bytes_per_second";
  subject.work = [&entry, problem](int ranks) { return entry.bytes(problem, ranks); };
  if (entry.combines) subject.facts.emplace_back("reduction", std::string(name_of(problem.how)));
  if (entry.has_root) subject.facts.emplace_back("root", problem.root);
  if (entry.has_uneven) subject.facts.emplace_back("unequal parts", problem.uneven ? 1 : 0);
  subject.heap_bytes = [&entry, problem, options, memory, patterns = subject.patterns](int ranks) {
    std::size_t most = 0;
    for (const pattern how : patterns)
      most = std::max(most, heap_of(entry, problem, options, how, ranks, memory));
    if (!options.direct) return most;
    const auto elements = static_cast<std::size_t>(largest_of(entry.in_count, problem, ranks) +
                                                   largest_of(entry.out_count, problem, ranks));
    return most + elements * size_of(problem.type) + (std::size_t{1} << 16);
  };
  subject.need = [&entry, problem, options, memory](int ranks, const std::vector<pattern>& patterns,
                                                    bool /*verify*/) {
    return memory == memory_kind::cuda ? device_need(entry, problem, options, ranks, patterns)
                                       : host_need(entry, problem, options, ranks, patterns);
  };
  subject.make = [&entry, problem, options](world& w, pattern how, std::uint64_t seed) {
    collective_options chosen = options;
    chosen.how = how;
    return std::make_unique<collective_workload>(w, entry, problem, chosen, seed);
  };
  return subject;
}

}  // namespace untax
