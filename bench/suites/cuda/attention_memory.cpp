#include "bench/suites/cuda/attention_memory.hpp"

#include <algorithm>

#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bench {
namespace {

constexpr double least_cache_bytes = 1e9;
constexpr std::int64_t columns = 4096;

}  // namespace

attention_memory::of_rank::of_rank(std::size_t cache_bytes, std::size_t rows_bytes,
                                   std::size_t small_bytes)
    : cache(cache_bytes),
      q(rows_bytes),
      out(rows_bytes),
      right(rows_bytes),
      lengths(small_bytes),
      table(small_bytes),
      scratch(small_bytes) {}

attention_memory::attention_memory(gpu_team& team, const std::vector<attention_row>& rows)
    : team_(team), cache_bytes_(least_cache_bytes) {
  std::int64_t elements = columns;
  std::int64_t small = 1 << 20;
  for (const attention_row& row : rows) {
    cache_bytes_ = std::max(cache_bytes_, row.bytes());
    elements = std::max(elements, row.problem.batch * row.problem.heads * row.problem.head_dim);
    small = std::max({small, 4 * row.problem.pages, 4 * row.problem.keys});
  }
  for (int rank = 0; rank < team.size(); ++rank) {
    team.use(rank);
    ranks_.push_back(std::make_unique<of_rank>(static_cast<std::size_t>(cache_bytes_),
                                               static_cast<std::size_t>(2 * elements),
                                               static_cast<std::size_t>(small)));
    const auto count = static_cast<std::int64_t>(cache_bytes_) / 2 / columns;
    const stream_ref stream{team.stream_of(rank)};
    gpu::fill_normal({at(rank).cache.data(), dtype::bf16, count, columns},
                     3 * static_cast<std::uint64_t>(rank) + 1, {0, count}, {0, columns}, stream);
    gpu::fill_normal({at(rank).q.data(), dtype::bf16, 1, elements}, 99, {0, 1}, {0, elements},
                     stream);
  }
  team.finish();
}

void attention_memory::prepare(const attention_row& row) {
  const flash_decode_problem& p = row.problem;
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(p.batch),
                                          static_cast<std::int32_t>(p.keys));
  std::vector<std::int32_t> table(static_cast<std::size_t>(p.pages));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  std::uint64_t state = 1;
  for (std::size_t i = table.size(); i > 1; --i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::swap(table[i - 1], table[(state >> 33U) % i]);
  }
  for (int rank = 0; rank < team_.size(); ++rank) {
    team_.use(rank);
    gpu::require(cudaMemcpyAsync(at(rank).lengths.data(), lengths.data(), 4 * lengths.size(),
                                 cudaMemcpyDefault, team_.stream_of(rank)),
                 "cannot copy lengths to a GPU");
    gpu::require(cudaMemcpyAsync(at(rank).table.data(), table.data(), 4 * table.size(),
                                 cudaMemcpyDefault, team_.stream_of(rank)),
                 "cannot copy a page table to a GPU");
  }
  team_.finish();
}

int attention_memory::regions_of(const attention_row& row) const {
  return std::clamp(static_cast<int>(cache_bytes_ / row.bytes()), 1, 20);
}

int attention_memory::runs_of(const attention_row& row) const {
  return row.bytes() < least_cache_bytes ? std::clamp(regions_of(row), 4, 20) : 1;
}

attention_shard attention_memory::shard_of(const attention_row& row, int rank, int run) const {
  const flash_decode_problem& p = row.problem;
  const auto half = static_cast<std::size_t>(row.bytes() / 2);
  auto* keys = static_cast<std::byte*>(at(rank).cache.data()) +
               static_cast<std::size_t>(run % regions_of(row)) * 2 * half;
  const std::int64_t rows = p.page_size > 0 ? p.pages * p.page_size : p.batch * p.keys;
  const std::int64_t cols = p.kv_heads * p.head_dim;
  return {.keys = {keys, p.type, rows, cols},
          .values = {keys + half, p.type, rows, cols},
          .lengths = static_cast<const std::int32_t*>(at(rank).lengths.data()),
          .page_table =
              p.page_size > 0 ? static_cast<const std::int32_t*>(at(rank).table.data()) : nullptr};
}

matrix attention_memory::rows_of(const attention_row& row, const device_buffer& memory) {
  return {memory.data(), row.problem.type, row.problem.batch * row.problem.heads,
          row.problem.head_dim};
}

}  // namespace untax::bench
