#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/host/convert.hpp"
#include "ops/common/arguments.hpp"
#include "ops/flash_attention/backend.hpp"
#include "ops/flash_attention/reference.hpp"

namespace untax {
namespace {

/// The columns of a head in some rows of a matrix.
const_matrix part_of(const const_matrix& m, std::int64_t row, std::int64_t rows, std::int64_t head,
                     std::int64_t width) {
  const auto* const data =
      static_cast<const std::byte*>(m.data) +
      (row * m.stride + head * width) * static_cast<std::int64_t>(size_of(m.type));
  return {data, m.type, rows, width, m.stride};
}

/// Rows of a sequence.
struct row_range {
  std::int64_t begin;
  std::int64_t count;
};

/// The reference: row by row, in fp64.
class host_backend final : public flash_attention_backend {
 public:
  host_backend(const flash_attention_problem& problem, int rank) : problem_(problem), rank_(rank) {}

  void run(const flash_attention_operands& o, stream_ref stream) override {
    argument_check{flash_attention_name, rank_}.no_stream(stream);
    const std::int64_t group = problem_.heads / problem_.kv_heads;
    if (o.query_begins != nullptr) {
      check("query_begins", o.query_begins, problem_.queries, o.q.rows);
      check("key_begins", o.key_begins, problem_.keys, o.keys.rows);
    }
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      const row_range queries = range_of(b, problem_.queries, o.query_begins);
      const row_range keys = range_of(b, problem_.keys, o.key_begins);
      for (std::int64_t kv = 0; kv < problem_.kv_heads; ++kv) {
        const attended_keys to(part_of(o.keys, keys.begin, keys.count, kv, problem_.head_dim),
                               part_of(o.values, keys.begin, keys.count, kv, problem_.head_dim),
                               static_cast<double>(problem_.scale));
        for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
          for (std::int64_t row = 0; row < queries.count; ++row)
            store(o, queries.begin + row, head,
                  to.attend(part_of(o.q, queries.begin + row, 1, head, problem_.head_dim),
                            seen_keys(row, queries.count, keys.count, problem_.causal)));
        }
      }
    }
  }

 private:
  [[nodiscard]] static row_range range_of(std::int64_t b, std::int64_t length,
                                          const std::int32_t* begins) {
    if (begins == nullptr) return {b * length, length};
    return {begins[b], begins[b + 1] - begins[b]};
  }

  void store(const flash_attention_operands& o, std::int64_t row, std::int64_t head,
             const attended_row& result) const {
    const std::vector<float> values(result.out.begin(), result.out.end());
    const const_matrix to = part_of(as_const(o.out), row, 1, head, problem_.head_dim);
    host::narrow(values.data(), problem_.head_dim, 1, problem_.head_dim,
                 {static_cast<std::byte*>(const_cast<void*>(to.data)),  // NOLINT(*-const-cast)
                  to.stride, to.type});
    if (o.log_sums != nullptr)
      o.log_sums[row * problem_.heads + head] = static_cast<float>(result.log_sum);
  }

  /// Checks values that on a GPU cannot be checked before a kernel runs.
  void check(std::string_view name, const std::int32_t* begins, std::int64_t most,
             std::int64_t rows) const {
    const auto refuse = [&](const std::string& text) {
      throw error(errc::invalid_argument,
                  fmt::format("rank {}: {}: {}", rank_, flash_attention_name, text));
    };
    for (std::int64_t b = 0; b <= problem_.batch; ++b) {
      if (begins[b] < 0 || begins[b] > rows)
        refuse(fmt::format("{}[{}] is {}; it has to be between 0 and {}, the rows of the matrix",
                           name, b, begins[b], rows));
      if (b == 0) continue;
      const std::int64_t length = std::int64_t{begins[b]} - begins[b - 1];
      if (length < 0 || length > most)
        refuse(
            fmt::format("{}[{}] is {} and the one before it {}: a sequence of {} rows; it has to "
                        "be between 0 and {}",
                        name, b, begins[b], begins[b - 1], length, most));
    }
  }

  flash_attention_problem problem_;
  int rank_;
};

}  // namespace

process_owned<flash_attention_backend> host_flash_attention(const flash_attention_problem& problem,
                                                            int rank) {
  return make_process_owned<host_backend>(problem, rank);
}

}  // namespace untax
