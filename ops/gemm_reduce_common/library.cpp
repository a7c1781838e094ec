#include <optional>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "engines/bulk/communicator.hpp"
#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/library_run.hpp"
#include "ops/gemm_reduce_common/device.hpp"

namespace untax {
namespace {

/// One GEMM makes the rank's partial. Then NCCL reduces in the type of partials, in an order of its
/// own. A reduce-scatter needs full shards, so there are rows after the last one. A result that is
/// not yet C, in type or in size, is copied or converted to it at the end.
class library_sum final : public device_operator {
 public:
  library_sum(world& w, const device_sum& sum, bool varying_rows)
      : device_operator(w),
        world_(&w.stable_view()),
        sum_(sum),
        rows_{sum.m, w.size()},
        scatters_(sum.target == reduce_target::owner),
        own_(own_rows()),
        ranks_(w.size() == 1 ? nullptr : bulk::communicator_of(w)) {
    gpu::load_matrix_kernels();
    const std::int64_t depth = sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size;
    if (ranks_) {
      const std::size_t bytes = partial_rows() * row_bytes();
      partial_ = bulk::scratch(bytes);
      // Rows after the last one, and all rows of a rank without a part of k, are never written.
      bulk::copy_and_wait(partial_.data(), std::vector<std::byte>(bytes).data(), bytes);
      if (!direct() || varying_rows)
        summed_ = bulk::scratch(static_cast<std::size_t>(shard_rows()) * row_bytes());
    }
    if (depth == 0) return;
    const dtype result = ranks_ ? sum.partials : sum.type;
    gemm_.emplace(bulk::library_product{sum.m, sum.n, depth, sum.type, result});
    gemm_->settle();
    if (varying_rows) gemm_->vary_rows();
  }

  /// Rows after the last one are then those of a run before: their sum is not C.
  void set_rows(std::int64_t rows) override {
    sum_.m = rows;
    rows_.extent = rows;
    own_ = own_rows();
    if (gemm_) gemm_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (!ranks_) return gemm_->run(a, weights, c, stream);
    void* const to = direct() ? c : summed_.data();
    multiply_then_gather(
        *world_,
        [&] {
          if (gemm_) gemm_->run(a, weights, partial_.data(), stream);
        },
        [&] { reduce(to, stream); },
        [&] {
          if (!direct()) hand_over(c, stream);
        });
  }
  [[nodiscard]] pattern how() const override { return pattern::bulk_library; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{}: bulk_library, one GEMM by {}, then {} in {} by {}", sum_.operator_name,
                       bulk::blas().text, scatters_ ? "one reduce-scatter" : "one all-reduce",
                       name_of(sum_.partials), bulk::nccl().text);
  }

 private:
  [[nodiscard]] std::int64_t own_rows() const {
    return scatters_ ? rows_.of(world_->rank()).size : sum_.m;
  }
  [[nodiscard]] std::size_t row_bytes() const {
    return static_cast<std::size_t>(sum_.n) * size_of(sum_.partials);
  }
  [[nodiscard]] std::size_t partial_rows() const {
    return static_cast<std::size_t>(scatters_ ? rows_.full() * rows_.parts : sum_.m);
  }
  [[nodiscard]] std::int64_t shard_rows() const { return scatters_ ? rows_.full() : sum_.m; }
  /// Whether NCCL writes C itself.
  [[nodiscard]] bool direct() const { return sum_.partials == sum_.type && own_ == shard_rows(); }

  void reduce(void* to, stream_ref stream) {
    const std::int64_t count = shard_rows() * sum_.n;
    if (scatters_)
      return ranks_->reduce_scatter(partial_.data(), to, count, sum_.partials, reduction::sum,
                                    stream);
    ranks_->all_reduce(partial_.data(), to, count, sum_.partials, reduction::sum, stream);
  }
  void hand_over(void* c, stream_ref stream) {
    if (own_ == 0) return;
    if (sum_.partials == sum_.type)
      return bulk::copy_bytes(c, summed_.data(), static_cast<std::size_t>(own_) * row_bytes(),
                              stream);
    gpu::round_to({c, sum_.type, own_, sum_.n}, {summed_.data(), sum_.partials, own_, sum_.n},
                  stream);
  }

  world* world_;
  device_sum sum_;
  sharding rows_;
  bool scatters_;
  std::int64_t own_;                           // rows of C
  std::shared_ptr<bulk::communicator> ranks_;  // null if there is one rank only
  bulk::scratch partial_;
  bulk::scratch summed_;
  std::optional<bulk::library_gemm> gemm_;
};

}  // namespace

std::unique_ptr<device_operator> sums_by_library(world& w, const device_sum& sum,
                                                 bool varying_rows) {
  return std::make_unique<library_sum>(w, sum, varying_rows);
}

}  // namespace untax
