#pragma once

#include <cmath>
#include <memory>
#include <span>

#include <untax/sparse/csr.hpp>
#include <untax/sparse/ways.hpp>

#include "engines/host/team.hpp"

namespace untax::sparse {

/// The operands of a product, and the threads that compute it.
template <class Value>
struct spmv_call {
  host::team& team;
  int threads;
  Value alpha;
  std::span<const Value> x;
  Value beta;
  std::span<Value> y;

  /// Stores y of a row whose terms add up to `sum`.
  void put(std::int64_t row, Value sum) const {
    Value& to = y[static_cast<std::size_t>(row)];
    to = beta == Value(0) ? alpha * sum : std::fma(beta, to, alpha * sum);
  }
};

template <class Value>
class kernel {
 public:
  virtual ~kernel() = default;
  virtual void run(const spmv_call<Value>& call) = 0;
};

template <class Value>
using kernel_of = std::unique_ptr<kernel<Value>>;

template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_csr_thread(csr_view<Value, Offset> matrix);
/// Adds a row as `way.lanes` lanes of a GPU do, with the same bits. Their number is a power of two.
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_csr_lanes(csr_view<Value, Offset> matrix, const spmv_way& way);
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_csr_adaptive(csr_view<Value, Offset> matrix);
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_csr_merge_path(csr_view<Value, Offset> matrix);
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_csr_balanced(csr_view<Value, Offset> matrix);
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_coo(csr_view<Value, Offset> matrix);
/// ELL is SELL-P with slices of equal width. Throws `unsupported` if that needs too much padding.
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_ell(csr_view<Value, Offset> matrix);
template <class Value, class Offset>
[[nodiscard]] kernel_of<Value> make_sellp(csr_view<Value, Offset> matrix);

}  // namespace untax::sparse
