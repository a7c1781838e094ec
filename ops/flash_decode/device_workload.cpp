#include "ops/flash_decode/device_workload.hpp"

#include <algorithm>
#include <cstddef>

#include "ops/flash_decode/planning.hpp"

namespace untax {
namespace {

std::size_t bytes_of(const matrix& m) {
  return static_cast<std::size_t>(m.rows * m.cols) * size_of(m.type);
}

std::size_t entries_of(const flash_decode_problem& p) {
  return static_cast<std::size_t>(std::max<std::int64_t>(p.batch * pages_of_sequence(p), 1));
}

}  // namespace

device_attention_workload::placed::placed(dtype type, const extent& size)
    : memory(static_cast<std::size_t>(size.rows * size.cols) * size_of(type)),
      there{memory.data(), type, size.rows, size.cols} {}

device_attention_workload::device_attention_workload(world& w, const attention_work& work,
                                                     const flash_decode_options& options,
                                                     std::uint64_t seed)
    : work_(work),
      world_(w.size()),
      rank_(w.rank()),
      inputs_(work, w.size(), seed),
      q_(work.problem.type, {work.problem.batch * work.problem.heads, work.problem.head_dim}),
      keys_(work.problem.type, cache_extent(work.problem)),
      values_(work.problem.type, cache_extent(work.problem)),
      out_(work.problem.type, {q_.there.rows, q_.there.cols}),
      lengths_(static_cast<std::size_t>(work.problem.batch) * sizeof(std::int32_t)),
      table_(entries_of(work.problem) * sizeof(std::int32_t)),
      op_(w, work.problem, options) {
  refresh(seed);
  poison_result();
  // No rank may run while another one still allocates.
  w.barrier();
}

void device_attention_workload::refresh(std::uint64_t seed) {
  inputs_ = attention_inputs(work_, world_, seed);
  std::vector<std::byte> q(bytes_of(q_.there));
  std::vector<std::byte> keys(bytes_of(keys_.there));
  std::vector<std::byte> values(keys.size());
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> table;
  const auto here = [](std::vector<std::byte>& bytes, const matrix& there) {
    return matrix{bytes.data(), there.type, there.rows, there.cols};
  };
  inputs_.fill_queries(here(q, q_.there));
  inputs_.fill_cache(rank_, here(keys, keys_.there), here(values, values_.there), lengths, table);
  bulk::copy_and_wait(q_.there.data, q.data(), q.size());
  bulk::copy_and_wait(keys_.there.data, keys.data(), keys.size());
  bulk::copy_and_wait(values_.there.data, values.data(), values.size());
  bulk::copy_and_wait(lengths_.data(), lengths.data(), lengths.size() * sizeof(std::int32_t));
  bulk::copy_and_wait(table_.data(), table.data(), table.size() * sizeof(std::int32_t));
}

void device_attention_workload::poison_result() {
  const std::vector<std::byte> ones(bytes_of(out_.there), std::byte{0xff});
  bulk::copy_and_wait(out_.there.data, ones.data(), ones.size());
}

void device_attention_workload::run() {
  const bool paged = work_.problem.page_size > 0;
  const attention_shard shard{
      .keys = as_const(keys_.there),
      .values = as_const(values_.there),
      .lengths = static_cast<const std::int32_t*>(lengths_.data()),
      .page_table = paged ? static_cast<const std::int32_t*>(table_.data()) : nullptr};
  op_.run(as_const(q_.there), shard, out_.there);
}

double device_attention_workload::relative_error() const {
  std::vector<std::byte> found(bytes_of(out_.there));
  bulk::copy_and_wait(found.data(), out_.there.data, found.size());
  return untax::relative_error({found.data(), out_.there.type, out_.there.rows, out_.there.cols},
                               inputs_.result());
}

std::size_t device_heap_for(const flash_decode_problem& p, int world) {
  // Two sets of packets, gathered partial results, and packets of an all_gather, which have twice
  // the bytes of their data.
  constexpr std::size_t copies = 8;
  constexpr std::size_t of_blocks = std::size_t{64} << 20U;
  const auto rows = static_cast<std::size_t>(p.batch * p.heads) * static_cast<std::size_t>(world);
  const auto row = static_cast<std::size_t>(p.head_dim + 2) * sizeof(float);
  return copies * rows * row + of_blocks;
}

}  // namespace untax
