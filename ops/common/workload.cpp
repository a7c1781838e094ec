#include "ops/common/workload.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "engines/host/convert.hpp"
#include "engines/host/openblas.hpp"
#include "ops/common/deviation.hpp"

namespace untax {
namespace {

/// Columns of the reference that are computed at a time.
constexpr std::int64_t block_columns = 256;

std::vector<double> widened(const random_matrix& whole, dtype type, range rows, range cols) {
  std::vector<std::byte> rounded(static_cast<std::size_t>(cols.size) * size_of(type));
  std::vector<float> line(static_cast<std::size_t>(cols.size));
  std::vector<double> values(static_cast<std::size_t>(rows.size * cols.size));
  for (std::int64_t i = 0; i < rows.size; ++i) {
    whole.fill({rounded.data(), type, 1, cols.size}, {rows.begin + i, 1}, cols);
    host::widen({rounded.data(), cols.size, type}, 1, cols.size, line.data(), cols.size);
    std::copy(line.begin(), line.end(), values.begin() + i * cols.size);
  }
  return values;
}

}  // namespace

workload::workload(world& w, const operator_entry& entry, const gemm_problem& problem,
                   const operator_options& options, std::uint64_t seed)
    : problem_(problem),
      share_(entry.share(problem, w.size(), w.rank())),
      tolerance_(tolerance_of(entry, problem)),
      element_share_(element_share_of(entry, problem, w.size())),
      op_(entry.make(w, problem, options)) {
  a_ = own(a_memory_, share_.a_rows, share_.a_cols);
  b_ = own(b_memory_, share_.b_rows, share_.b_cols);
  c_ = op_->result();
  if (c_.data == nullptr) c_ = own(c_memory_, share_.c_rows, share_.c_cols);
  refresh(seed);
  poison_result();
}

matrix workload::own(std::vector<std::byte>& memory, range rows, range cols) const {
  memory.resize(static_cast<std::size_t>(rows.size * cols.size) * size_of(problem_.type));
  return {memory.data(), problem_.type, rows.size, cols.size};
}

void workload::refresh(std::uint64_t seed) {
  whole_a_.seed = seed * 2;
  whole_b_.seed = seed * 2 + 1 + (share_.b_of_rank << 40);
  whole_a_.fill(a_, share_.a_rows, share_.a_cols);
  whole_b_.fill(b_, share_.b_rows, share_.b_cols);
}

void workload::poison_result() { poison(c_); }

double workload::relative_error() const {
  const std::int64_t k = problem_.k;
  const std::int64_t m = share_.c_rows.size;
  const auto a = widened(whole_a_, problem_.type, share_.c_rows, {0, k});
  std::vector<double> reference(static_cast<std::size_t>(m * block_columns));
  std::vector<float> line(static_cast<std::size_t>(block_columns));
  deviation found(tolerance_);
  const pieces blocks{share_.c_cols, block_columns};
  for (int i = 0; m > 0 && i < blocks.count(); ++i) {
    const range cols = blocks.at(i);
    const auto b = widened(whole_b_, problem_.type, cols, {0, k});
    host::blas().dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(m),
                       static_cast<blasint>(cols.size), static_cast<blasint>(k), 1.0, a.data(),
                       static_cast<blasint>(k), b.data(), static_cast<blasint>(k), 0.0,
                       reference.data(), static_cast<blasint>(cols.size));
    for (std::int64_t row = 0; row < m; ++row) {
      const std::int64_t first = row * c_.stride + cols.begin - share_.c_cols.begin;
      const auto count = static_cast<std::size_t>(cols.size);
      host::widen(
          {static_cast<std::byte*>(c_.data) + first * static_cast<std::int64_t>(size_of(c_.type)),
           c_.stride, c_.type},
          1, cols.size, line.data(), cols.size);
      // With N(0, 1) inputs a square is expected to be k.
      found.add_row(
          std::span<const float>(line).first(count),
          std::span<const double>(reference).subspan(static_cast<std::size_t>(row) * count, count),
          element_share_, static_cast<double>(k));
    }
  }
  return found.relative_error();
}

std::uint64_t workload::fingerprint() const {
  // FNV-1a over the rows.
  std::uint64_t hash = 14695981039346656037ULL;
  const auto size = static_cast<std::int64_t>(size_of(c_.type));
  for (std::int64_t row = 0; row < c_.rows; ++row) {
    const auto* bytes = static_cast<const std::byte*>(c_.data) + row * c_.stride * size;
    for (std::int64_t i = 0; i < c_.cols * size; ++i)
      hash = (hash ^ static_cast<std::uint64_t>(bytes[i])) * 1099511628211ULL;
  }
  return hash;
}

double tolerance_of(const operator_entry& entry, const gemm_problem& problem) noexcept {
  const auto of = [](dtype type) {
    return type == dtype::f32 ? 1e-5 : type == dtype::f16 ? 6e-4 : 4e-3;
  };
  if (!entry.sums_to) return of(problem.type);
  return std::max(of(problem.type), 1.5 * of(partials_type(problem)));
}

double element_share_of(const operator_entry& entry, const gemm_problem& problem,
                        int ranks) noexcept {
  const double sent = entry.sums_to ? partials_share(partials_type(problem), ranks) : 0;
  return roundoff_of(problem.type) + addition_share(problem.k) + sent;
}

std::size_t heap_for(const gemm_problem& problem, int world, int phases) noexcept {
  // Two sets of the gathered A and of what the ranks offer, or of all partial results, and C
  // itself. Shards are rounded up, so a few rows more than the whole.
  const auto rows = static_cast<double>(problem.m + world);
  const double gathered = rows * static_cast<double>(problem.k + shard_granularity * world) *
                          static_cast<double>(size_of(problem.type)) * 4;
  // In one phase every rank has the partial results of all ranks. Untax chooses it where they are
  // small, or the rows fewer than the ranks.
  const double sources = phases == 1 || (phases == 0 && problem.m < world) ? world : 1;
  const double partial = rows * static_cast<double>(problem.n) * 4 * (2 + 2 * sources);
  return whole_bytes(gathered + partial + 0x1p24);
}

std::size_t device_heap_for(const operator_entry& entry, const gemm_problem& problem, int world,
                            int phases) noexcept {
  const std::size_t usual = heap_for(problem, world, phases);
  if (!entry.sums_to) return usual;
  // Two sets of what every rank sends: the rows that one rank adds, or all rows, and the rest of
  // its tiles above and below them.
  constexpr double edge = 256;
  if (phases == 0 && entry.phases) phases = entry.phases(problem, world, memory_kind::cuda);
  const bool all = entry.phases && phases == 1;
  const double rows = static_cast<double>(problem.m) / (all ? 1 : world) + 2 * edge;
  const double cols = static_cast<double>(problem.n) + edge;
  const double sources = 2.0 * world;
  const double result = static_cast<double>(problem.m) * cols * sizeof(float);
  return std::max(usual, whole_bytes(rows * cols * sources * sizeof(float) + result + 0x1p24));
}

}  // namespace untax
