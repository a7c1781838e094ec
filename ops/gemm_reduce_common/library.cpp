#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "engines/product/product.hpp"
#include "ops/common/library_run.hpp"
#include "ops/common/row_table.hpp"
#include "ops/gemm_reduce_common/device.hpp"
#include "ops/gemm_reduce_common/sum_exchange.hpp"

namespace untax {
namespace {

/// One GEMM makes the rank's partial, in bulk_library by cuBLASLt, in bulk_synchronous by the
/// quicker of cuBLASLt and untax's kernel. Then the partials are summed in their type. A
/// reduce-scatter needs full shards, so there are rows after the last one. A sum that is not yet C,
/// in type, in size or in place, is copied or converted to it at the end.
class bulk_sum final : public device_operator {
 public:
  /// `exchange` is null if there is one rank only.
  bulk_sum(world& w, const device_sum& sum, bool varying_rows, pattern how,
           std::shared_ptr<sum_exchange> exchange)
      : device_operator(w),
        world_(&w.stable_view()),
        sum_(sum),
        how_(how),
        rows_{sum.m, w.size()},
        exchange_(std::move(exchange)) {
    gpu::load_matrix_kernels();
    const std::int64_t depth = sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size;
    if (depth == 0) return;
    const dtype result = exchange_ ? sum.partials : sum.type;
    if (how == pattern::bulk_library) {
      library_.emplace(bulk::library_product{sum.m, sum.n, depth, sum.type, result});
      varying_rows ? library_->vary_rows() : library_->settle();
      return;
    }
    const product_shape shape{sum.m, sum.n, depth, sum.type, result};
    if (varying_rows) {
      quickest_.emplace(shape, std::vector{sum.m}, rows_before(sum.m));
    } else {
      quickest_.emplace(shape);
    }
  }

  /// Rows after the last one are then those of an earlier run; their sums are not part of C.
  void set_rows(std::int64_t rows) override {
    sum_.m = rows;
    rows_.extent = rows;
    if (library_) library_->set_rows(rows);
    if (quickest_) quickest_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (!exchange_) return multiply(a, weights, c, stream);
    const bool fit = sum_.partials == sum_.type && own_rows() == shard_rows();
    void* const to = exchange_->place_for(c, fit);
    multiply_then_gather(
        *world_, [&] { multiply(a, weights, exchange_->partial(), stream); },
        [&] { exchange_->run(to, shard_rows() * sum_.n, stream); },
        [&] {
          if (to != c) hand_over(c, to, stream);
        });
  }
  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    const std::string product =
        fmt::format("{}: {}, {}", sum_.operator_name, name_of(how_),
                    quickest_ ? quickest_->text() : "one GEMM by " + bulk::blas().text);
    return exchange_ ? fmt::format("{}, then {}", product, exchange_->text()) : product;
  }

 private:
  /// Multiplies; does nothing at a rank without a part of k.
  void multiply(const void* a, const void* weights, void* to, stream_ref stream) const {
    if (library_) library_->run(a, weights, to, stream);
    if (quickest_) quickest_->run(a, weights, to, stream);
  }
  [[nodiscard]] bool scatters() const { return sum_.target == reduce_target::owner; }
  [[nodiscard]] std::int64_t own_rows() const {
    return scatters() ? rows_.of(world_->rank()).size : sum_.m;
  }
  [[nodiscard]] std::int64_t shard_rows() const { return scatters() ? rows_.full() : sum_.m; }

  void hand_over(void* c, void* from, stream_ref stream) const {
    const std::int64_t rows = own_rows();
    if (rows == 0) return;
    if (sum_.partials == sum_.type)
      return bulk::copy_bytes(c, from, static_cast<std::size_t>(rows * sum_.n) * size_of(sum_.type),
                              stream);
    gpu::round_to({c, sum_.type, rows, sum_.n}, {from, sum_.partials, rows, sum_.n}, stream);
  }

  world* world_;
  device_sum sum_;
  pattern how_;
  sharding rows_;
  std::shared_ptr<sum_exchange> exchange_;
  std::optional<bulk::library_gemm> library_;  ///< in bulk_library
  std::optional<product> quickest_;            ///< in bulk_synchronous
};

}  // namespace

std::unique_ptr<device_operator> sums_by_library(world& w, const device_sum& sum,
                                                 bool varying_rows) {
  return std::make_unique<bulk_sum>(
      w, sum, varying_rows, pattern::bulk_library,
      w.size() == 1 ? nullptr : exchange_by_library(w, sum, varying_rows));
}

std::unique_ptr<device_operator> sums_after_library(world& w, const device_sum& sum,
                                                    bool varying_rows,
                                                    std::shared_ptr<sum_exchange> exchange) {
  return std::make_unique<bulk_sum>(w, sum, varying_rows, pattern::bulk_synchronous,
                                    std::move(exchange));
}

}  // namespace untax
