#include "ops/all_reduce_norm/workload.hpp"

#include <cstring>

#include <fmt/format.h>

#include "ops/all_reduce_norm/planning.hpp"

namespace untax {
namespace {

/// With this scale normalised elements, which are about 1, use most of the range of e4m3.
constexpr float usual_scale = 1.0F / 16;

}  // namespace

norm_workload::norm_workload(world& w, const all_reduce_norm_problem& problem,
                             const operator_options& options, std::uint64_t seed)
    : problem_(problem),
      world_(w.size()),
      rank_(w.rank()),
      on_gpu_(w.memory() == memory_kind::cuda),
      op_(w, problem, options) {
  refresh(seed);
  poison_result();
  // No rank may run while another one still allocates.
  if (on_gpu_) w.barrier();
}

const void* norm_workload::passed_on(const void* data, std::size_t bytes, bulk::scratch& memory) {
  if (!on_gpu_) return data;
  if (memory.data() == nullptr) memory = bulk::scratch(bytes);
  bulk::copy_and_wait(memory.data(), data, bytes);
  return memory.data();
}

norm_results norm_workload::found() const {
  const norm_results result = op_.result();
  if (!on_gpu_) return result;
  const norm_room room = room_of(problem_);
  found_.resize(room.bytes);
  bulk::copy_and_wait(found_.data(), result.x, room.bytes);
  // NOLINTNEXTLINE(*-reinterpret-cast): as the operator lays its results out
  auto* scales = reinterpret_cast<float*>(found_.data() + room.scales);
  return {found_.data(), found_.data() + room.out, result.scales == nullptr ? nullptr : scales};
}

matrix norm_workload::own(std::vector<std::byte>& memory, std::int64_t rows) const {
  memory.resize(static_cast<std::size_t>(rows * problem_.hidden) * size_of(problem_.type));
  return {memory.data(), problem_.type, rows, problem_.hidden};
}

random_matrix norm_workload::part_of(int rank) const noexcept {
  return {seed_ * 1000 + 10 + static_cast<std::uint64_t>(rank)};
}

void norm_workload::refresh(std::uint64_t seed) {
  seed_ = seed;
  const range columns{0, problem_.hidden};
  const matrix in = own(in_memory_, problem_.tokens);
  const matrix residual = own(residual_memory_, problem_.tokens);
  const matrix weight = own(weight_memory_, 1);
  part_of(rank_).fill(in, {0, problem_.tokens}, columns);
  part_of(-1).fill(residual, {0, problem_.tokens}, columns);
  part_of(-2).fill(weight, {0, 1}, columns);
  const auto bytes = [&](const matrix& m) { return static_cast<std::size_t>(m.span_bytes()); };
  const auto there = [&](const matrix& m, bulk::scratch& memory) {
    return const_matrix(passed_on(m.data, bytes(m), memory), m.type, m.rows, m.cols);
  };
  inputs_ = {there(in, device_in_), there(residual, device_residual_),
             passed_on(weight.data, bytes(weight), device_weight_), usual_scale};
}

void norm_workload::poison_result() {
  const norm_results result = op_.result();
  if (on_gpu_) {
    const std::vector<std::byte> ones(room_of(problem_).bytes, std::byte{0xff});
    return bulk::copy_and_wait(result.x, ones.data(), ones.size());
  }
  const auto elements = static_cast<std::size_t>(problem_.tokens * problem_.hidden);
  // All bits set are a NaN in every element type.
  std::memset(result.x, 0xff, elements * size_of(problem_.type));
  std::memset(result.out, 0xff, elements * normed_size(problem_));
  if (result.scales != nullptr)
    std::memset(result.scales, 0xff, static_cast<std::size_t>(problem_.tokens) * sizeof(float));
}

std::vector<double> norm_workload::passed(const random_matrix& whole, std::int64_t row) const {
  std::vector<std::byte> memory;
  const matrix line = own(memory, 1);
  whole.fill(line, {row, 1}, {0, problem_.hidden});
  return widened(line.data, problem_.hidden, problem_.type);
}

double norm_workload::relative_error() const { return error_of(bits()); }

double norm_workload::error_of(std::span<const std::byte> bits) const {
  norm_reference right(problem_, world_, passed(part_of(-2), 0));
  const auto elements = static_cast<std::size_t>(problem_.tokens * problem_.hidden);
  const auto row = static_cast<std::size_t>(problem_.hidden);
  const std::byte* x = bits.data();
  const std::byte* out = x + elements * size_of(problem_.type);
  const std::byte* scales = out + elements * normed_size(problem_);
  for (std::int64_t token = 0; token < problem_.tokens; ++token) {
    std::vector<double> sum = passed(part_of(-1), token);
    for (int rank = 0; rank < world_; ++rank) {
      const std::vector<double> part = passed(part_of(rank), token);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    norm_row found{x, out, inputs_.scale};
    if (problem_.output == norm_output::e4m3_per_token) {
      std::memcpy(&found.scale, scales, sizeof found.scale);
      scales += sizeof found.scale;
    }
    right.add_row(sum, found);
    x += row * size_of(problem_.type);
    out += row * normed_size(problem_);
  }
  return right.relative_error();
}

std::vector<std::byte> norm_workload::bits() const {
  const norm_results result = found();
  const auto elements = static_cast<std::size_t>(problem_.tokens * problem_.hidden);
  std::vector<std::byte> all;
  const auto append = [&](const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    all.insert(all.end(), first, first + bytes);
  };
  append(result.x, elements * size_of(problem_.type));
  append(result.out, elements * normed_size(problem_));
  if (result.scales != nullptr)
    append(result.scales, static_cast<std::size_t>(problem_.tokens) * sizeof(float));
  return all;
}

trial_subject subject_of(const all_reduce_norm_problem& p, const operator_options& options,
                         memory_kind memory) {
  trial_subject subject;
  subject.name = all_reduce_norm_name;
  subject.description = fmt::format(
      "{}, tokens {}, hidden {}, {}{}", subject.name, p.tokens, p.hidden, name_of(p.type),
      p.output == norm_output::same ? "" : fmt::format(", out {}", name_of(p.output)));
  subject.facts = {{"tokens", p.tokens},
                   {"hidden", p.hidden},
                   {"dtype", std::string(name_of(p.type))},
                   {"out", std::string(name_of(p.output))}};
  const bool on_gpus = memory == memory_kind::cuda;
  subject.memory = memory;
  for (const pattern how : host_patterns) {
    if (on_gpus ? how == pattern::fused_sequential : norm_has_pattern(how))
      subject.patterns.push_back(how);
  }
  subject.tolerance = tolerance_of(p);
  subject.rate_unit = "GB/s";
  subject.rate_name = "bytes_per_second";
  // The least that a rank reads and writes: its input, the residual, and both results.
  const double elements = static_cast<double>(p.tokens) * static_cast<double>(p.hidden);
  const double element = static_cast<double>(size_of(p.type));
  subject.work = [=, normed = static_cast<double>(normed_size(p))](int ranks) {
    return ranks * elements * (3 * element + normed);
  };
  subject.heap_bytes = [p, phases = on_gpus ? 1 : options.phases](int ranks) {
    return heap_for(p, ranks, phases);
  };
  subject.need = [=, phases = on_gpus ? 1 : options.phases](
                     int ranks, const std::vector<pattern>& patterns, bool verify) {
    const auto times = static_cast<double>(patterns.size());
    memory_need need;
    need.activations = times * ranks * 2 * elements * element;
    need.heap_of_rank = times * static_cast<double>(heap_for(p, ranks, phases));
    need.heaps = ranks * need.heap_of_rank;
    need.work_space = verify ? ranks * 64.0 * static_cast<double>(p.hidden) : 0;
    return need;
  };
  subject.make = [p, options](world& w, pattern how, std::uint64_t seed) -> std::unique_ptr<trial> {
    operator_options chosen = options;
    chosen.how = how;
    return std::make_unique<norm_workload>(w, p, chosen, seed);
  };
  return subject;
}

}  // namespace untax
