#include "ops/rope_append/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include <untax/core/error.hpp>
#include <untax/ops/rope_table.hpp>

#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/rope_append/backend.hpp"
#include "ops/rope_append/spec.hpp"

namespace untax {
namespace {

double tolerance_of(dtype type) noexcept {
  return type == dtype::f32 ? 2e-5 : type == dtype::f16 ? 1e-3 : 5e-3;
}

/// Elements of a head in fp64, normalised and rotated.
void finish_head(std::vector<double>& y, const rope_append_problem& p,
                 const std::vector<double>& weight, std::span<const float> rotation) {
  if (p.norm) {
    const double squares = std::inner_product(y.begin(), y.end(), y.begin(), 0.0);
    const double root =
        std::sqrt(squares / static_cast<double>(p.head_dim) + static_cast<double>(p.epsilon));
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] *= (weight[i] + static_cast<double>(p.norm_offset)) / root;
  }
  const std::size_t half = rotation.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    double& a = y[p.interleaved ? 2 * i : i];
    double& b = y[p.interleaved ? 2 * i + 1 : i + half];
    const auto cosine = static_cast<double>(rotation[i]);
    const auto sine = static_cast<double>(rotation[half + i]);
    const double turned = a * cosine - b * sine;
    b = b * cosine + a * sine;
    a = turned;
  }
}

}  // namespace

rope_append_work::rope_append_work(const rope_append_problem& problem, int world, int rank)
    : problem_(problem), world_(world), rank_(rank) {}

std::vector<trial_operand> rope_append_work::operands() const {
  auto operands = trial_operands(spec_of<rope_append>::operands(problem_, world_, rank_));
  const bool needed[] = {problem_.bias, problem_.norm, problem_.norm};
  for (std::size_t i = 0; i < std::size(needed); ++i)
    if (!needed[i]) operands[bias + i].cols = 0;
  return operands;
}

std::unique_ptr<lone_operator<rope_append>> rope_append_work::make(
    world& w, const rope_append_options& options) const {
  return std::make_unique<lone_operator<rope_append>>(rope_append(w, problem_, options));
}

void rope_append_work::fill(std::uint64_t seed, operand_set& set) const {
  const rope_append_problem& p = problem_;
  const std::uint64_t first = seed * 64 + static_cast<std::uint64_t>(rank_) * 4;
  for (const std::size_t i : {qkv, bias, q_norm, k_norm}) {
    const matrix m = set[i].host_elements(p.type);
    random_matrix{first + i}.fill(m, {0, m.rows}, {0, m.cols});
  }
  const std::vector<float> table =
      rope_table({.rotated = set[rotations].shape().cols}, p.positions);
  std::ranges::copy(table, static_cast<float*>(set[rotations].host()));
  const std::int64_t most = std::min(p.keys, p.positions);
  auto* const positions = static_cast<std::int32_t*>(set[position].host());
  auto* const sequences = static_cast<std::int32_t*>(set[sequence].host());
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    positions[t] =
        static_cast<std::int32_t>((t / p.batch + static_cast<std::int64_t>(seed)) % most);
    sequences[t] = static_cast<std::int32_t>(t % p.batch);
  }
  std::vector<std::int32_t> pages(static_cast<std::size_t>(p.pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937_64(first));
  const trial_operand& shape = set[page_table].shape();
  std::copy_n(pages.begin(), shape.rows * shape.cols,
              static_cast<std::int32_t*>(set[page_table].host()));
}

void rope_append_work::run(lone_operator<rope_append>& op, operand_set& set,
                           stream_ref stream) const {
  const auto integers = [&](std::size_t i) {
    return static_cast<const std::int32_t*>(set[i].data());
  };
  const rope_append_problem& p = problem_;
  op.get().run({.qkv = as_const(set[qkv].elements(p.type)),
                .bias = p.bias ? set[bias].data() : nullptr,
                .q_norm = p.norm ? set[q_norm].data() : nullptr,
                .k_norm = p.norm ? set[k_norm].data() : nullptr,
                .rotations = static_cast<const float*>(set[rotations].data()),
                .position = integers(position),
                .sequence = integers(sequence),
                .page_table = p.page_size > 0 ? integers(page_table) : nullptr,
                .keys = set[keys].elements(p.type),
                .values = set[values].elements(p.type),
                .q = set[q].elements(p.type)},
               stream);
}

double rope_append_work::relative_error(std::uint64_t /*seed*/, operand_set& set) const {
  const rope_append_problem& p = problem_;
  const auto widened_operand = [&](std::size_t i) {
    const trial_operand& shape = set[i].shape();
    return widened(set[i].fetched(), shape.rows * shape.cols, p.type);
  };
  const std::vector<double> x = widened_operand(qkv);
  const std::vector<double> added = widened_operand(bias);
  const std::vector<double> weights[] = {widened_operand(q_norm), widened_operand(k_norm)};
  const std::span<const float> table = set[rotations].values<float>();
  const auto positions = set[position].values<std::int32_t>();
  const auto sequences = set[sequence].values<std::int32_t>();
  const auto pages = set[page_table].values<std::int32_t>();
  const std::vector<double> found[] = {widened_operand(q), widened_operand(keys),
                                       widened_operand(values)};
  std::vector<bool> is_new(static_cast<std::size_t>(set[keys].shape().rows));
  deviation off(tolerance_of(p.type));
  const auto columns = static_cast<std::size_t>(qkv_columns(p));
  const auto width = static_cast<std::size_t>(p.head_dim);
  const auto rotated = static_cast<std::size_t>(set[rotations].shape().cols);
  for (std::size_t t = 0; t < positions.size(); ++t) {
    const std::int64_t key = positions[t];
    std::int64_t row = sequences[t] * p.keys + key;
    if (p.page_size > 0) {
      const auto place = sequences[t] * pages_of_sequence(p) + key / p.page_size;
      row = pages[static_cast<std::size_t>(place)] * p.page_size + key % p.page_size;
    }
    is_new[static_cast<std::size_t>(row)] = true;
    std::size_t column = t * columns;
    for (std::size_t part = 0; part < std::size(found); ++part) {
      const std::int64_t heads = part == 0 ? p.heads : p.kv_heads;
      const std::int64_t result_row = part == 0 ? static_cast<std::int64_t>(t) : row;
      for (std::int64_t head = 0; head < heads; ++head, column += width) {
        std::vector<double> y(&x[column], &x[column] + width);
        for (std::size_t i = 0; i < width && p.bias; ++i) y[i] += added[column - t * columns + i];
        if (part < std::size(weights)) {
          finish_head(y, p, weights[part],
                      table.subspan(static_cast<std::size_t>(key) * rotated, rotated));
        }
        const auto first = static_cast<std::size_t>(result_row * heads + head) * width;
        off.add_row(std::span<const double>(found[part]).subspan(first, width), y,
                    2 * roundoff_of(p.type) + 1e-5, 1);
      }
    }
  }
  for (std::size_t i = 0; i < found[1].size(); ++i) {
    if (is_new[i / static_cast<std::size_t>(set[keys].shape().cols)]) continue;
    if (!std::isnan(found[1][i]) || !std::isnan(found[2][i]))
      return std::numeric_limits<double>::infinity();
  }
  return off.relative_error();
}

trial_subject spec_of<rope_append>::subject(problem p, const options& o, memory_kind memory,
                                            bool /*uneven*/) {
  // A few pages more than are needed, so that some pages of the cache are unused.
  if (p.page_size > 0 && p.pages == 0) p.pages = p.batch * pages_of_sequence(p) + 3;
  if (p.page_size > 0 && p.pages < p.batch * pages_of_sequence(p)) {
    throw error(errc::invalid_argument,
                fmt::format("--pages is {}; {} sequences of {} keys take {} pages", p.pages,
                            p.batch, p.keys, p.batch * pages_of_sequence(p)));
  }
  const std::int64_t most = std::min(p.keys, p.positions);
  if (p.tokens > p.batch * most) {
    throw error(errc::invalid_argument,
                fmt::format("--tokens is {}; {} sequences have places for {} tokens each, by "
                            "--keys and --positions",
                            p.tokens, p.batch, most));
  }
  trial_subject subject;
  subject.name = name;
  subject.description =
      fmt::format("{}, {} tokens, {} + 2 x {} heads of {}, {}{}{}{}", name, p.tokens, p.heads,
                  p.kv_heads, p.head_dim, name_of(p.type), p.bias ? ", bias" : "",
                  p.norm ? ", norm" : "", p.page_size > 0 ? ", pages" : "");
  subject.facts = {{"tokens", p.tokens},
                   {"heads", p.heads},
                   {"kv_heads", p.kv_heads},
                   {"head_dim", p.head_dim},
                   {"rotated", p.rotated},
                   {"page_size", p.page_size},
                   {"dtype", std::string(name_of(p.type))}};
  subject.memory = memory;
  subject.patterns = {lone_pattern};
  subject.tolerance = tolerance_of(p.type);
  // The bytes that all ranks read and write, but for weights and rotations.
  subject.work = [p](int ranks) {
    return 2.0 * ranks * static_cast<double>(p.tokens) * static_cast<double>(qkv_columns(p)) *
           static_cast<double>(size_of(p.type));
  };
  subject.heap_bytes = [](int /*ranks*/) { return std::size_t{0}; };
  subject.need = need_of_ranks(
      memory, [p](int ranks, int rank, const std::vector<pattern>& patterns, bool verify) {
        memory_need need = need_of(rope_append_work(p, ranks, rank).operands());
        // The reference has the operands in fp64.
        if (verify) need.work_space = need.activations * 8;
        need.activations *= static_cast<double>(patterns.size());
        return need;
      });
  subject.make = maker_of_lone_trials<rope_append_workload>(name, p, o);
  return subject;
}

bool spec_of<rope_append>::has_gpu_kernel(const problem& p, const options& /*o*/) {
  const std::int64_t rotated = p.rotated == 0 ? p.head_dim : p.rotated;
  return p.head_dim % 8 == 0 && p.head_dim <= 256 && rotated % 16 == 0;
}

}  // namespace untax
