#include <optional>

#include <fmt/format.h>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/library_run.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"

namespace untax {
namespace {

/// The GEMM writes the rank's columns as a slab [m, n_r], in the place for an all-gather in place.
/// The gathered slabs are joined side by side at the end, since C is row-major: a collective sends
/// no rectangles, and a transposed C would have to be transposed back.
class library_gemm_all_scatter final : public device_operator {
 public:
  library_gemm_all_scatter(world& w, const gemm_all_scatter_problem& p, bool varying_rows)
      : device_operator(w),
        world_(&w.stable_view()),
        problem_(p),
        shards_{p.n, w.size(), shard_granularity},
        gather_(w, slab_bytes()),
        slabs_(w.size() == 1 ? 0 : static_cast<std::size_t>(gather_.bytes())) {
    gpu::load_matrix_kernels();
    const range own = shards_.of(w.rank());
    if (own.empty()) return;
    gemm_.emplace(bulk::library_product{p.m, own.size, p.k, p.type, p.type});
    varying_rows ? gemm_->vary_rows() : gemm_->settle();
  }

  void set_rows(std::int64_t rows) override {
    problem_.m = rows;
    gather_.resize(slab_bytes());
    if (gemm_) gemm_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (shards_.parts == 1) return gemm_->run(a, weights, c, stream);
    void* own = slabs_.data(static_cast<std::size_t>(gather_.own_at()));
    multiply_then_gather(
        *world_,
        [&] {
          if (gemm_) gemm_->run(a, weights, own, stream);
        },
        [&] { gather_.run(own, slabs_.data(), stream); },
        [&] { gpu::join_slabs(slabs_.data(), c, problem_.m, shards_, stream); });
  }
  [[nodiscard]] pattern how() const override { return pattern::bulk_library; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("gemm_all_scatter: bulk_library, one GEMM by {}, then {}, then slabs joined",
                       bulk::blas().text, gather_.text());
  }

 private:
  [[nodiscard]] sharding slab_bytes() const {
    return shards_.times(problem_.m * static_cast<std::int64_t>(size_of(problem_.type)));
  }

  world* world_;
  gemm_all_scatter_problem problem_;
  sharding shards_;
  bulk::slab_gather gather_;
  bulk::scratch slabs_;
  std::optional<bulk::library_gemm> gemm_;
};

}  // namespace

std::unique_ptr<device_operator> gemm_all_scatter_by_library(
    world& w, const gemm_all_scatter_problem& problem, bool varying_rows) {
  return std::make_unique<library_gemm_all_scatter>(w, problem, varying_rows);
}

}  // namespace untax
