#include "ops/all_gather_gemm/gathered_product.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/ops/collective.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/launch/whole_run.hpp"
#include "engines/product/product.hpp"
#include "ops/all_gather_gemm/row_gather.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {
namespace {

/// With fewer rows every pattern reads the weights once, and so takes about as long as they do.
constexpr std::int64_t least_gathered_rows = 65;
/// With more bytes of A other patterns hide more of the gather than their tiles lose, and the
/// gathered rows would take too much of the heap beside the rooms of other plans.
constexpr std::int64_t most_gathered_bytes = std::int64_t{32} << 20;

gpu::collective_kernel kernels_of(const row_gather_problem& p, const collective_plan& plan) {
  return exchange_code(gpu::messages_of(parts_of(p, plan.world), plan.world, plan.rank), p.type,
                       plan);
}

}  // namespace

class row_gather {
 public:
  row_gather(world& w, const all_gather_gemm_problem& p, bool varying_rows)
      : world_(&w.stable_view()),
        matrix_(w.allocate_owned_cleared<std::byte>(
            static_cast<std::size_t>(p.m * p.k) * size_of(p.type), "all_gather_gemm gathered A")),
        gather_(w, row_gather_of(p), {.varying_count = varying_rows, .direct = true}) {
    // The first run on memory compares its offset at all ranks, which a capture cannot.
    const std::int64_t own = gather_.own(p.m).begin * static_cast<std::int64_t>(size_of(p.type));
    gather_.run(matrix_->local() + own, matrix_->local(), p.m, {});
  }
  row_gather(const row_gather&) = delete;
  row_gather& operator=(const row_gather&) = delete;
  ~row_gather() {
    if (world_->stopped() || world_->unwinding()) matrix_.abandon();
  }

  /// The gathered rows, without gaps.
  [[nodiscard]] const void* rows() const { return matrix_->local(); }
  void run(const void* shard, std::int64_t rows, stream_ref stream) {
    gather_.run(shard, matrix_->local(), rows, stream);
  }
  [[nodiscard]] const std::string& text() const { return gather_.explain(); }

 private:
  class exchange final : public collective {
   public:
    exchange(world& w, const row_gather_problem& problem, const collective_options& options)
        : collective(w, need_of(problem, w.size()), options), problem_(problem) {
      const std::string text = fmt::format("count {}, rows of {}", problem.count, problem.row);
      if (options.varying_count) {
        std::vector<std::int64_t> ends = row_ends(problem.count / problem.row);
        for (std::int64_t& end : ends) end *= problem.row;
        start(w, text, counted(w, problem, options, kernels_of, std::move(ends)), options);
        return;
      }
      with_protocol_for(problem_, plan(), [&](auto protocol) {
        start(
            w, text, program(std::move(protocol)), [&] { return kernels_of(problem_, plan()); },
            options);
      });
    }

    /// This rank's part of `rows` rows.
    [[nodiscard]] range own(std::int64_t rows) const {
      row_gather_problem of_rows = problem_;
      of_rows.count = rows * problem_.row;
      return parts_of(of_rows, plan().world).shards.of(plan().rank);
    }
    /// `in`: this rank's rows, which may lie in place.
    void run(const void* in, void* out, std::int64_t rows, stream_ref stream) {
      const std::int64_t count = count_of_run("out", rows * problem_.row, problem_.count);
      carry_out({in, problem_.type, own(rows).size}, {out, problem_.type, count}, count, stream);
    }

   private:
    row_gather_problem problem_;
  };

  world* world_;
  owned_symmetric<std::byte> matrix_;
  exchange gather_;  // destroyed first
};

namespace {

class gathered_product final : public device_operator {
 public:
  gathered_product(world& w, const all_gather_gemm_problem& p, const operator_options& options,
                   std::shared_ptr<row_gather> gather)
      : device_operator(w),
        world_(&w.stable_view()),
        rows_(p.m),
        gather_(std::move(gather)),
        product_(product_for(w, p, options)) {}

  void set_rows(std::int64_t rows) override {
    rows_ = rows;
    product_.set_rows(rows);
  }
  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    if (!gather_) return product_.run(a, weights, c, stream);
    gpu::whole_run launches(*world_);
    launches([&] { gather_->run(a, rows_, stream); });
    launches([&] { product_.run(gather_->rows(), weights, c, stream); });
  }
  [[nodiscard]] pattern how() const override { return pattern::bulk_synchronous; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("all_gather_gemm: {}, {}{}", name_of(how()),
                       gather_ ? gather_->text() + ", then " : "", product_.text());
  }

 private:
  static product product_for(const world& w, const all_gather_gemm_problem& p,
                             const operator_options& options) {
    const product_shape shape{.m = p.m,
                              .n = p.n,
                              .k = p.k,
                              .type = p.type,
                              .result = p.type,
                              .invariant = options.invariant,
                              .constant_weights = options.constant_weights,
                              .sharing = w.ranks_per_gpu()};
    if (!options.varying_rows) return product(shape);
    return {shape, std::vector{p.m}, rows_before(p.m)};
  }

  world* world_;
  std::int64_t rows_;
  std::shared_ptr<row_gather> gather_;
  product product_;
};

}  // namespace

bool may_gather_first(const all_gather_gemm_problem& problem,
                      const operator_options& options) noexcept {
  return problem.gather == gather_axis::rows && options.workers == 0 && options.senders == 0;
}

std::vector<pattern> usual_gathers(const all_gather_gemm_problem& problem,
                                   const operator_options& options, int world) {
  const std::int64_t bytes =
      problem.m * problem.k * static_cast<std::int64_t>(size_of(problem.type));
  if (world == 1 || problem.m < least_gathered_rows || bytes > most_gathered_bytes ||
      !may_gather_first(problem, options))
    return {};
  std::vector<pattern> usual{pattern::bulk_synchronous};
  for (const pattern how : all_patterns) {
    if (how != pattern::automatic && !is_bulk(how)) usual.push_back(how);
  }
  return usual;
}

std::shared_ptr<row_gather> gather_rows(world& w, const all_gather_gemm_problem& problem,
                                        bool varying_rows) {
  return std::make_shared<row_gather>(w, problem, varying_rows);
}

std::unique_ptr<device_operator> product_of_gathered(world& w,
                                                     const all_gather_gemm_problem& problem,
                                                     const operator_options& options,
                                                     std::shared_ptr<row_gather> gather) {
  return std::make_unique<gathered_product>(w, problem, options, std::move(gather));
}

}  // namespace untax
