#include "decoder/exchange.hpp"

#include <untax/core/memory_kind.hpp>
#include <untax/core/pattern.hpp>

#include "engines/bulk/slab_gather.hpp"
#include "engines/gpu/launch/whole_run.hpp"

namespace untax {
namespace {

bool takes_library(const world& w, const decoder_options& options) {
  return options.how == pattern::bulk_library && w.memory() == memory_kind::cuda && w.size() > 1;
}

/// On GPUs bulk_synchronous is an operator of its own kernels, in the quickest pattern, behind
/// which another one begins.
collective_options own_collective(const world& w, const decoder_options& options, bool varies) {
  collective_options own;
  own.varying_count = varies;
  if (!is_bulk(options.how) || w.memory() == memory_kind::cuda) return own;
  own.how = pattern::bulk_synchronous;
  own.launch = options.launch;
  return own;
}

}  // namespace

rank_gather::rank_gather(world& w, const decoder_options& options, std::int64_t shard, dtype type,
                         bool varies)
    : world_(&w), type_(type) {
  if (takes_library(w, options)) {
    library_ = bulk::communicator_of(w);
    return;
  }
  own_.emplace(w, all_gather_problem{.count = w.size() * shard, .type = type},
               own_collective(w, options, varies));
}

void rank_gather::run(const void* in, void* out, std::int64_t shard, stream_ref stream) {
  if (own_) return own_->run({in, type_, shard}, {out, type_, world_->size() * shard}, stream);
  gpu::whole_run run(*world_);
  run.all_of([&] { library_->all_gather(in, out, shard, type_, stream); });
}

rank_sum::rank_sum(world& w, const decoder_options& options, const matrix& sums)
    : world_(&w), sums_(sums) {
  if (takes_library(w, options)) {
    library_ = bulk::communicator_of(w);
    return;
  }
  own_.emplace(w, all_reduce_problem{.count = sums.rows * sums.cols, .type = sums.type},
               own_collective(w, options, true));
}

const_matrix rank_sum::run(const const_matrix& rows, stream_ref stream) {
  const std::int64_t count = rows.rows * rows.cols;
  if (own_) {
    own_->run({rows.data, rows.type, count}, {sums_.data, rows.type, count}, stream);
  } else {
    gpu::whole_run run(*world_);
    run.all_of([&] {
      library_->all_reduce(rows.data, sums_.data, count, rows.type, reduction::sum, stream);
    });
  }
  return {sums_.data, rows.type, rows.rows, rows.cols};
}

}  // namespace untax
