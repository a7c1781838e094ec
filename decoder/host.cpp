#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>

#include "decoder/backend.hpp"
#include "decoder/convert.hpp"
#include "decoder/fused_step.hpp"

namespace untax {
namespace {

constexpr std::align_val_t alignment{512};

void* row_of(const matrix& m, std::int64_t row) {
  return static_cast<std::byte*>(m.data) +
         static_cast<std::size_t>(row * m.stride) * size_of(m.type);
}
const void* row_of(const const_matrix& m, std::int64_t row) {
  return static_cast<const std::byte*>(m.data) +
         static_cast<std::size_t>(row * m.stride) * size_of(m.type);
}

/// Whether `score` comes before `best`, which was winner before. NaN is the largest.
bool is_better(float score, float best) {
  return score > best || (std::isnan(score) && !std::isnan(best));
}

class host_backend : public decoder_backend {
 public:
  stream_ref begin(stream_ref given) override {
    if (given.handle == nullptr) return given;
    throw error(errc::unsupported, "decoder: there are no streams in a world of the host");
  }
  void finish(stream_ref /*given*/) override {}
  void replay(std::int64_t /*key*/, stream_ref stream, const replayed& body) override {
    body(stream);
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = ::operator new(bytes, alignment);
    std::memset(memory, 0, bytes);
    return {memory, [](void* p) { ::operator delete(p, alignment); }};
  }
  void upload(void* to, const void* from, std::size_t bytes, stream_ref /*stream*/) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes, stream_ref stream) override {
    upload(to, from, bytes, stream);
  }
  void download(void* to, const void* from, std::size_t bytes, stream_ref stream) override {
    upload(to, from, bytes, stream);
  }

  void embed(const const_matrix& embedding, const index_range& share, const std::int32_t* tokens,
             float scale, const matrix& to, stream_ref /*stream*/) override {
    for (std::int64_t t = 0; t < to.rows; ++t) {
      void* target = row_of(to, t);
      if (tokens[t] < share.begin || tokens[t] >= share.end) {
        std::memset(target, 0, static_cast<std::size_t>(to.cols) * size_of(to.type));
        continue;
      }
      const void* source = row_of(embedding, tokens[t] - share.begin);
      for (std::int64_t i = 0; i < to.cols; ++i) {
        set_element(target, to.type, i, scale * element_at(source, embedding.type, i));
      }
    }
  }

  void gather_rows(const const_matrix& from, const std::int32_t* rows, const matrix& to,
                   stream_ref /*stream*/) override {
    for (std::int64_t i = 0; i < to.rows; ++i) {
      std::memcpy(row_of(to, i), row_of(from, rows[i]),
                  static_cast<std::size_t>(to.cols) * size_of(to.type));
    }
  }

  void open_windows(const windowed_keys& keys, std::int64_t tokens, std::int32_t* lengths,
                    std::int32_t* rows, stream_ref /*stream*/) override {
    for (std::int64_t i = 0; i < tokens; ++i) {
      const auto count = std::min<std::int64_t>(keys.lengths[i], keys.window);
      lengths[i] = static_cast<std::int32_t>(count);
      for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t key = keys.lengths[i] - count + j;
        const std::int64_t page = keys.page_table[i * keys.sequence_pages + key / keys.page_size];
        rows[i * keys.window + j] =
            static_cast<std::int32_t>(page * keys.page_size + key % keys.page_size);
      }
    }
  }

  void best_of_rows(const const_matrix& logits, std::int64_t first, token_score* best,
                    stream_ref /*stream*/) override {
    for (std::int64_t row = 0; row < logits.rows; ++row) {
      const void* elements = row_of(logits, row);
      token_score winner{.score = element_at(elements, logits.type, 0),
                         .token = static_cast<std::int32_t>(first)};
      for (std::int64_t c = 1; c < logits.cols; ++c) {
        const float score = element_at(elements, logits.type, c);
        if (is_better(score, winner.score)) {
          winner = {.score = score, .token = static_cast<std::int32_t>(first + c)};
        }
      }
      best[row] = winner;
    }
  }

  void best_of_ranks(const token_score* best, int ranks, std::int64_t stride, std::int32_t* tokens,
                     std::int64_t count, stream_ref /*stream*/) override {
    for (std::int64_t i = 0; i < count; ++i) {
      token_score winner = best[i];
      for (int r = 1; r < ranks; ++r) {
        const token_score& other = best[r * stride + i];
        if (is_better(other.score, winner.score)) winner = other;
      }
      tokens[i] = winner.token;
    }
  }

  void join_logits(const gathered_logits& from, float cap, const matrix& to,
                   stream_ref /*stream*/) override {
    for (int r = 0; r < from.ranks; ++r) {
      const std::int64_t begin = from.begins[r];
      const std::int64_t width = from.begins[r + 1] - begin;
      for (std::int64_t row = 0; row < to.rows; ++row) {
        auto* target = static_cast<float*>(row_of(to, row)) + begin;
        const std::int64_t start = r * from.part + row * width;
        for (std::int64_t c = 0; c < width; ++c) {
          const float logit = element_at(from.data, from.type, start + c);
          target[c] = cap > 0 ? cap * std::tanh(logit / cap) : logit;
        }
      }
    }
  }
};

}  // namespace

std::unique_ptr<decoder_backend> decoder_backend_of(world& w) {
  return w.memory() == memory_kind::cuda ? device_decoder_backend(w) : host_decoder_backend();
}

std::unique_ptr<decoder_backend> host_decoder_backend() { return std::make_unique<host_backend>(); }

std::unique_ptr<fused_step> fused_step_of(decoder_operators& operators,
                                          const decoder_weights& weights,
                                          std::span<const layer_cache> caches) {
  if (operators.job->memory() != memory_kind::cuda) return nullptr;
  return device_fused_step_of(operators, weights, caches);
}

}  // namespace untax
