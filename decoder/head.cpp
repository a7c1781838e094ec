#include "decoder/head.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace untax {
namespace {

static_assert(sizeof(token_score) == 2 * sizeof(float));

std::int64_t widest_part(const decoder_config& c, int ranks) {
  std::int64_t widest = 0;
  for (int r = 0; r < ranks; ++r) {
    widest = std::max(widest, shares_of(c, r, ranks).vocabulary.size());
  }
  return round_up(widest, std::int64_t{8});
}

linear head_of(decoder_operators& d) {
  linear_problem problem;
  problem.rows = d.options.sequences;
  problem.n = d.share.vocabulary.size();
  problem.k = d.config.hidden;
  problem.type = d.config.type;
  return {d.alone, problem, linear_options_of(d.options)};
}

}  // namespace

decoder_head::decoder_head(std::shared_ptr<decoder_operators> operators)
    : operators_(std::move(operators)),
      width_(widest_part(operators_->config, operators_->job->size())),
      head_(head_of(*operators_)),
      scores_(*operators_->job, operators_->options, operators_->options.sequences * 2,
              dtype::f32) {
  decoder_operators& d = *operators_;
  decoder_backend& memory = *d.backend;
  const auto ranks = static_cast<std::size_t>(d.job->size());
  const auto rows = static_cast<std::size_t>(d.options.sequences);
  const std::size_t part = rows * static_cast<std::size_t>(width_) * size_of(d.config.type);
  own_ = memory.allocate(part);
  best_ = memory.allocate(rows * sizeof(token_score));
  gathered_best_ = memory.allocate(ranks * rows * sizeof(token_score));
  tokens_ = memory.allocate(rows * sizeof(std::int32_t));
  if (!d.options.logits) return;
  logits_.emplace(*d.job, d.options, d.options.sequences * width_, d.config.type, true);
  gathered_ = memory.allocate(ranks * part);
  joined_ = memory.allocate(rows * static_cast<std::size_t>(d.config.vocabulary) * sizeof(float));
  std::vector<std::int64_t> begins;
  for (int r = 0; r < d.job->size(); ++r) {
    begins.push_back(shares_of(d.config, r, d.job->size()).vocabulary.begin);
  }
  begins.push_back(d.config.vocabulary);
  const std::size_t bytes = begins.size() * sizeof(std::int64_t);
  begins_ = memory.allocate(bytes);
  memory.upload(begins_.get(), begins.data(), bytes, {});
}

void decoder_head::run(const const_matrix& normed, const const_matrix& weights, stream_ref stream) {
  decoder_operators& d = *operators_;
  const index_range& share = d.share.vocabulary;
  const matrix own(own_.get(), d.config.type, normed.rows, share.size());
  head_.run({.x = normed, .weights = weights, .bias = nullptr, .out = own}, stream);
  auto* best = static_cast<token_score*>(best_.get());
  const int ranks = d.job->size();
  auto* of_ranks = ranks == 1 ? best : static_cast<token_score*>(gathered_best_.get());
  const std::int64_t capacity = d.options.sequences;
  d.backend->best_of_rows(as_const(own), share.begin, best, stream);
  if (ranks > 1) scores_.run(best, of_ranks, capacity * 2, stream);
  d.backend->best_of_ranks(of_ranks, ranks, capacity, next_tokens(), normed.rows, stream);
  if (logits_) join(own, stream);
}

void decoder_head::join(const matrix& own, stream_ref stream) {
  decoder_operators& d = *operators_;
  const std::int64_t count = own.rows * width_;
  logits_->run(own.data, gathered_.get(), count, stream);
  const matrix joined(joined_.get(), dtype::f32, own.rows, d.config.vocabulary);
  d.backend->join_logits({.data = gathered_.get(),
                          .type = own.type,
                          .begins = static_cast<const std::int64_t*>(begins_.get()),
                          .ranks = d.job->size(),
                          .part = count},
                         d.config.logit_cap, joined, stream);
}

}  // namespace untax
