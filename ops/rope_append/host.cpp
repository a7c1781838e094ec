#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "engines/host/convert.hpp"
#include "ops/attention_common/refusal.hpp"
#include "ops/common/arguments.hpp"
#include "ops/rope_append/backend.hpp"

namespace untax {
namespace {

/// Row `row` of a matrix, from column `column` on.
host::tile_memory row_of(const const_matrix& m, std::int64_t row, std::int64_t column = 0) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(m.data));  // NOLINT(*-const-cast)
  return {data + (row * m.stride + column) * static_cast<std::int64_t>(size_of(m.type)), m.stride,
          m.type};
}

/// The reference: token by token, in fp32.
class host_backend final : public rope_append_backend {
 public:
  host_backend(const rope_append_problem& problem, int rank)
      : problem_(problem), refuse_{rope_append_name, rank} {}

  void run(const rope_append_operands& o, stream_ref stream) override {
    argument_check{rope_append_name, refuse_.rank}.no_stream(stream);
    const std::vector<std::int64_t> rows = rows_in_cache(o);
    const std::vector<float> bias = widened(o.bias, qkv_columns(problem_));
    const std::vector<float> q_norm = widened(o.q_norm, problem_.head_dim);
    const std::vector<float> k_norm = widened(o.k_norm, problem_.head_dim);
    const std::int64_t q_columns = problem_.heads * problem_.head_dim;
    const std::int64_t kv_columns = problem_.kv_heads * problem_.head_dim;
    std::vector<float> y(static_cast<std::size_t>(qkv_columns(problem_)));
    for (std::int64_t token = 0; token < o.qkv.rows; ++token) {
      host::widen(row_of(o.qkv, token), 1, qkv_columns(problem_), y.data(), qkv_columns(problem_));
      for (std::size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
      const float* const rotation = o.rotations + o.position[token] * problem_.rotated;
      for (std::int64_t head = 0; head < problem_.heads + problem_.kv_heads; ++head) {
        float* const x = y.data() + head * problem_.head_dim;
        if (problem_.norm) normalise(x, head < problem_.heads ? q_norm : k_norm);
        rotate(x, rotation);
      }
      const float* from = y.data();
      host::narrow(from, q_columns, 1, q_columns, row_of(as_const(o.q), token));
      from += q_columns;
      const std::int64_t row = rows[static_cast<std::size_t>(token)];
      host::narrow(from, kv_columns, 1, kv_columns, row_of(as_const(o.keys), row));
      from += kv_columns;
      host::narrow(from, kv_columns, 1, kv_columns, row_of(as_const(o.values), row));
    }
  }

 private:
  /// Checks values that on a GPU cannot be checked before a kernel runs; returns the row of each
  /// token in the cache.
  [[nodiscard]] std::vector<std::int64_t> rows_in_cache(const rope_append_operands& o) const {
    const rope_append_problem& p = problem_;
    std::vector<std::int64_t> rows;
    for (std::int64_t token = 0; token < o.qkv.rows; ++token) {
      const std::int64_t sequence = o.sequence == nullptr ? token : o.sequence[token];
      refuse_.unless_between(fmt::format("sequence[{}]", token), sequence, 0, p.batch - 1);
      const std::int64_t position = o.position[token];
      if (position >= p.keys && position < p.positions) {
        refuse_(
            fmt::format("position[{}] is {}, and a sequence has room for {} keys: that of "
                        "sequence {} is full",
                        token, position, p.keys, sequence));
      }
      refuse_.unless_between(fmt::format("position[{}]", token), position, 0, p.positions - 1);
      if (p.page_size == 0) {
        rows.push_back(sequence * p.keys + position);
        continue;
      }
      const std::int64_t place = position / p.page_size;
      const std::int64_t page = o.page_table[sequence * pages_of_sequence(p) + place];
      refuse_.unless_between(
          fmt::format("page_table[{}, {}], of token {},", sequence, place, token), page, 0,
          p.pages - 1);
      rows.push_back(page * p.page_size + position % p.page_size);
    }
    return rows;
  }

  [[nodiscard]] std::vector<float> widened(const void* elements, std::int64_t count) const {
    if (elements == nullptr) return {};
    std::vector<float> values(static_cast<std::size_t>(count));
    host::widen(row_of({elements, problem_.type, 1, count}, 0), 1, count, values.data(), count);
    return values;
  }

  void normalise(float* x, const std::vector<float>& weight) const {
    float squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) squares += x[i] * x[i];
    const float mean = squares / static_cast<float>(problem_.head_dim);
    const float scale = 1 / std::sqrt(mean + problem_.epsilon);
    for (std::size_t i = 0; i < weight.size(); ++i)
      x[i] *= scale * (weight[i] + problem_.norm_offset);
  }

  void rotate(float* x, const float* rotation) const {
    const std::int64_t half = problem_.rotated / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      float& a = x[problem_.interleaved ? 2 * i : i];
      float& b = x[problem_.interleaved ? 2 * i + 1 : i + half];
      const float cosine = rotation[i];
      const float sine = rotation[half + i];
      const float turned = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = turned;
    }
  }

  rope_append_problem problem_;
  attention_refusal refuse_;
};

}  // namespace

process_owned<rope_append_backend> host_rope_append(const rope_append_problem& problem, int rank) {
  return make_process_owned<host_backend>(problem, rank);
}

}  // namespace untax
