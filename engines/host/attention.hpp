#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/shard.hpp>
#include <untax/tile/step.hpp>

#include "engines/host/convert.hpp"

namespace untax::host {

/// The keys and values that one rank holds of all sequences. A row holds one key of all heads side
/// by side, `head_dim` elements each. The rows of a sequence are contiguous, or lie in pages that a
/// table names.
struct attention_cache {
  tile_memory keys;
  tile_memory values;
  const std::int32_t* lengths = nullptr;     ///< [batch]: keys of each sequence at this rank
  const std::int32_t* page_table = nullptr;  ///< [batch, pages]; null: a sequence is contiguous
  std::int64_t capacity = 0;                 ///< rows of a sequence without pages
  std::int64_t page_size = 0;                ///< rows of a page
  std::int64_t pages = 0;                    ///< entries of the table for a sequence
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  float scale = 1;      ///< of the products of queries and keys
  float logit_cap = 0;  ///< cap * tanh(logit / cap); 0: none

  [[nodiscard]] std::int64_t row_of(std::int64_t sequence, std::int64_t key) const noexcept {
    if (page_table == nullptr) return sequence * capacity + key;
    const std::int64_t page = page_table[sequence * pages + key / page_size];
    return page * page_size + key % page_size;
  }
};

/// The actions `attend` and `merge`. `attend` takes keys in blocks, with a running maximum.
/// Everything between the operands is fp32. A partial result is a row of `cols` normalised elements
/// and two statistics.
class attention_math {
 public:
  void attend(const step& s, const attention_cache& cache, const tile_memory& queries,
              const tile_memory& to);
  void merge(const step& s, const tile_memory& from, const tile_memory& to);

 private:
  void take_block(const step& s, const attention_cache& cache, range keys);
  /// Packs rows of one head of the cache into `to`, widened to fp32.
  void gather(const attention_cache& cache, const tile_memory& from, const step& s, range keys,
              std::vector<float>& to);

  std::vector<float> queries_;
  std::vector<float> block_;
  std::vector<float> logits_;
  std::vector<float> most_;
  std::vector<float> total_;
  std::vector<float> sum_;
  std::vector<float> line_;
};

}  // namespace untax::host
