#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
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

/// C = sum over slabs of A_s x B_s^T. The slabs [m, k_s] lie one behind the other. Each has a
/// product; all but the first add to C.
class added_products {
 public:
  added_products(const all_gather_gemm_problem& p, const sharding& shards)
      : shards_(shards), slab_(static_cast<std::int64_t>(bytes_of(p.m, shards.full(), p.type))) {
    for (int s = 0; s < shards.parts && !shards.of(s).empty(); ++s) {
      const std::int64_t size = shards.of(s).size;
      if (s > 1 && size == shards.full()) continue;
      kinds_.emplace_back(bulk::library_product{.m = p.m,
                                                .n = p.n,
                                                .k = size,
                                                .type = p.type,
                                                .result = p.type,
                                                .b_stride = p.k,
                                                .adds = s > 0});
      kinds_.back().settle();
    }
  }

  /// The full slabs, without the first, share a product. A shorter slab has its own.
  void run(const void* slabs, const void* weights, void* c, stream_ref stream) const {
    for (int s = 0; s < shards_.parts && !shards_.of(s).empty(); ++s) {
      const bool full = shards_.of(s).size == shards_.full();
      const library_gemm& kind = s == 0 ? kinds_.front() : full ? kinds_[1] : kinds_.back();
      kind.run(static_cast<const std::byte*>(slabs) + s * slab_,
               static_cast<const std::byte*>(weights) + shards_.of(s).begin * 2, c, stream);
    }
  }

 private:
  sharding shards_;
  std::int64_t slab_;  ///< bytes from a slab to the next
  std::vector<library_gemm> kinds_;
};

class library_all_gather_gemm final : public device_operator {
 public:
  library_all_gather_gemm(world& w, const all_gather_gemm_problem& p)
      : world_(&w.stable_view()),
        problem_(p),
        shards_(a_sharding(p, w.size())),
        gather_(w, slab_bytes(p, w.size())),
        alone_(w.size() == 1),
        gathered_(alone_ ? 0 : static_cast<std::size_t>(gather_.bytes())) {
    gpu::load_matrix_kernels();
    const bool in_slabs = p.gather == gather_axis::k && !alone_;
    whole_.emplace(bulk::library_product{p.m, p.n, p.k, p.type, p.type});
    whole_->settle();
    products_ = "one GEMM by " + bulk::blas().text;
    if (in_slabs) choose(w);
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
    added_products added(p, shards_);
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
  std::optional<added_products> added_;
  std::string products_;
};

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_by_library(
    world& w, const all_gather_gemm_problem& problem) {
  return std::make_unique<library_all_gather_gemm>(w, problem);
}

}  // namespace untax
