#include <optional>

#include <fmt/format.h>

#include "engines/bulk/gathered_product.hpp"
#include "engines/bulk/library_gemm.hpp"
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

/// The slabs of A as bytes.
sharding slab_bytes(const all_gather_gemm_problem& p, int world) {
  const std::int64_t each = p.gather == gather_axis::rows ? p.k : p.m;
  return a_sharding(p, world).times(each * static_cast<std::int64_t>(size_of(p.type)));
}

/// The slabs of a problem of fewer rows if ranks have unequal numbers of them; empty otherwise.
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
    const bulk::library_product whole{p.m, p.n, p.k, p.type, p.type};
    if (p.gather == gather_axis::k && !alone_) {
      slabs_.emplace(w, whole, shards_, gathered_.data());
      if (varying_rows) slabs_->vary_rows();
    } else {
      whole_.emplace(whole);
      varying_rows ? whole_->vary_rows() : whole_->settle();
    }
  }

  void set_rows(std::int64_t rows) override {
    problem_.m = rows;
    shards_ = a_sharding(problem_, shards_.parts);
    gather_.resize(slab_bytes(problem_, shards_.parts));
    if (slabs_) return slabs_->set_rows(rows);
    whole_->set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (alone_) return whole_->run(a, weights, c, stream);
    gather_then_multiply(
        *world_, [&] { gather_.run(a, gathered_.data(), stream); },
        [&] { multiply(weights, c, stream); });
  }
  [[nodiscard]] pattern how() const override { return pattern::bulk_library; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("all_gather_gemm: bulk_library, {}, then {}", gather_.text(),
                       slabs_ ? slabs_->text() : "one GEMM by " + bulk::blas().text);
  }

 private:
  void multiply(const void* weights, void* c, stream_ref stream) const {
    if (slabs_) return slabs_->run(gathered_.data(), weights, c, stream);
    whole_->run(gathered_.data(), weights, c, stream);
  }

  world* world_;
  all_gather_gemm_problem problem_;
  sharding shards_;
  bulk::slab_gather gather_;
  bool alone_;
  scratch gathered_;
  std::optional<library_gemm> whole_;            ///< the product, if A is stored by rows
  std::optional<bulk::gathered_product> slabs_;  ///< the product, if A is stored as slabs of
                                                 ///< columns
};

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_by_library(world& w,
                                                            const all_gather_gemm_problem& problem,
                                                            bool varying_rows) {
  return std::make_unique<library_all_gather_gemm>(w, problem, varying_rows);
}

}  // namespace untax
