#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
#include "engines/bulk/slab_products.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/layout.hpp"
#include "ops/common/library_run.hpp"

namespace untax {
namespace {

using bulk::library_gemm;
using bulk::scratch;

std::size_t bytes_of(std::int64_t rows, std::int64_t cols, dtype type) {
  return static_cast<std::size_t>(rows * cols) * size_of(type);
}

/// The slabs of A as bytes.
sharding slab_bytes(const all_gather_gemm_problem& p, int world) {
  const std::int64_t each = p.gather == gather_axis::rows ? p.k : p.m;
  return a_sharding(p, world).times(each * static_cast<std::int64_t>(size_of(p.type)));
}

/// The slabs of a problem of fewer rows where ranks have unequal numbers of them; nothing if there
/// are none.
std::optional<sharding> uneven(all_gather_gemm_problem p, int world) {
  if (p.gather != gather_axis::rows || p.m == 1) return std::nullopt;
  if (p.m % world == 0) --p.m;
  return slab_bytes(p, world);
}

class library_all_gather_gemm final : public device_operator {
 public:
  library_all_gather_gemm(world& w, const all_gather_gemm_problem& p, bool varying_rows)
      : device_operator(w),
        world_(&w.stable_view()),
        problem_(p),
        shards_(a_sharding(p, w.size())),
        gather_(w, slab_bytes(p, w.size()), varying_rows ? uneven(p, w.size()) : std::nullopt),
        alone_(w.size() == 1),
        gathered_(alone_ ? 0 : static_cast<std::size_t>(gather_.bytes())) {
    gpu::load_matrix_kernels();
    const bool in_slabs = p.gather == gather_axis::k && !alone_;
    whole_.emplace(bulk::library_product{p.m, p.n, p.k, p.type, p.type});
    whole_->settle();
    products_ = "one GEMM by " + bulk::blas().text;
    if (in_slabs) choose(w);
    if (!varying_rows) return;
    whole_->vary_rows();
    if (added_) added_->vary_rows();
  }

  void set_rows(std::int64_t rows) override {
    problem_.m = rows;
    shards_ = a_sharding(problem_, shards_.parts);
    gather_.resize(slab_bytes(problem_, shards_.parts));
    whole_->set_rows(rows);
    if (added_) added_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (alone_) return whole_->run(a, weights, c, stream);
    gather_then_multiply(
        *world_, [&] { gather_.run(a, gathered_.data(), stream); },
        [&] { multiply(weights, c, stream); });
  }
  [[nodiscard]] pattern how() const override { return pattern::bulk_library; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("all_gather_gemm: bulk_library, {}, then {}", gather_.text(), products_);
  }

 private:
  void multiply(const void* weights, void* c, stream_ref stream) const {
    if (added_) return added_->run(gathered_.data(), weights, c, stream);
    if (problem_.gather == gather_axis::rows)
      return whole_->run(gathered_.data(), weights, c, stream);
    gpu::join_slabs(gathered_.data(), joined_.data(), problem_.m, shards_, stream);
    whole_->run(joined_.data(), weights, c, stream);
  }

  /// Measures two ways to multiply slabs of columns: one by one, or joined side by side first.
  void choose(world& w) {
    const all_gather_gemm_problem& p = problem_;
    joined_ = scratch(bytes_of(p.m, p.k, p.type));
    bulk::slab_products added({p.m, p.n, p.k, p.type, p.type}, shards_);
    const scratch weights(bytes_of(p.n, p.k, p.type));
    const scratch c(bytes_of(p.m, p.n, p.type));
    const auto try_both = [&](int way, int round, stream_ref stream) {
      if (round == 0 && way == 0) {
        gpu::fill_normal({weights.data(), p.type, p.n, p.k}, 1, {0, p.n}, {0, p.k}, stream);
        gpu::fill_normal({gathered_.data(), p.type, p.m, p.k}, 2, {0, p.m}, {0, p.k}, stream);
      }
      if (way == 0) {
        multiply(weights.data(), c.data(), stream);
      } else {
        added.run(gathered_.data(), weights.data(), c.data(), stream);
      }
    };
    const std::vector<double> seconds = bulk::longest_of_ranks(w, bulk::seconds_of(2, try_both));
    const bool adds = seconds[1] < seconds[0];
    if (adds) {
      added_.emplace(std::move(added));
      joined_ = {};
    }
    products_ = fmt::format(
        "{} by {}; {} took {:.1f} us, {} {:.1f} us",
        adds ? "a GEMM for each slab that adds" : "one GEMM of the slabs joined", bulk::blas().text,
        "joining and one GEMM", 1e6 * seconds[0], "GEMMs that add", 1e6 * seconds[1]);
  }

  world* world_;
  all_gather_gemm_problem problem_;
  sharding shards_;
  bulk::slab_gather gather_;
  bool alone_;
  scratch gathered_;
  scratch joined_;
  std::optional<library_gemm> whole_;
  std::optional<bulk::slab_products> added_;
  std::string products_;
};

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_by_library(world& w,
                                                            const all_gather_gemm_problem& problem,
                                                            bool varying_rows) {
  return std::make_unique<library_all_gather_gemm>(w, problem, varying_rows);
}

}  // namespace untax
