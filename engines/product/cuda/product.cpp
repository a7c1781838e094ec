#include "engines/product/product.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/tile/shard.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "src/symmetric/queues.hpp"

namespace untax {
namespace {

using bulk::library_gemm;
using bulk::scratch;

/// Measurements rotate through this much memory: more than three times L2.
constexpr std::size_t rotated_bytes = std::size_t{200} << 20U;
/// The number of plans of the cost model that are timed if the number of rows is known.
constexpr std::size_t timed_plans = 3;
/// If nothing is timed, untax's kernels multiply up to so many rows. Measured on an H200: up to
/// there they take 0.87 of cuBLASLt's time, and about as long above.
constexpr std::int64_t few_rows = 64;
/// Above this every second end is timed: times change slowly there.
constexpr std::int64_t many_rows = 1024;

bool is_measured() { return environment().number_or_fallback(variable::measure, 0, 1) == 1; }

gpu::gemm_shape kernel_shape(const product_shape& s, std::int64_t rows) {
  return {rows, s.n, s.k, s.type, s.invariant};
}
/// The part of the current GPU that belongs to this rank.
gpu::gpu_model gpu_of(const product_shape& s) {
  gpu::gpu_model model = gpu::gpu_here();
  model.num_sms = part_of_gpu(model.num_sms, s.sharing);
  return model;
}

/// Plans for so many rows, the fastest first. If ranks share the GPU, blocks that wait for another
/// rank may leave no place for a larger cluster than a pair.
std::vector<gpu::gemm_plan> plans_of(const product_shape& s, std::int64_t rows) {
  std::vector<gpu::gemm_plan> plans = gpu::plans_by_model(kernel_shape(s, rows), gpu_of(s));
  if (s.sharing > 1)
    std::erase_if(plans, [](const gpu::gemm_plan& p) { return cluster_blocks(p.config) > 2; });
  return plans;
}

/// Operands of a shape in several places, so that each product reads from memory.
class rotated_operands {
 public:
  /// Throws `out_of_memory`.
  explicit rotated_operands(const product_shape& s)
      : shape_(s),
        a_bytes_(bytes(s.m * s.k, s.type)),
        b_bytes_(bytes(s.n * s.k, s.type)),
        c_bytes_(bytes(s.m * s.n, s.result)),
        places_(rotated_bytes / (a_bytes_ + b_bytes_ + c_bytes_) + 1),
        a_(a_bytes_ * places_),
        b_(b_bytes_ * places_),
        c_(c_bytes_ * places_) {}

  /// The median seconds of each of `ways` algorithms that multiply so many rows: `run(way, a, b, c,
  /// stream)`.
  template <class Run>
  [[nodiscard]] std::vector<double> seconds(int ways, std::int64_t rows, const Run& run) {
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(shape_.n) *
                         static_cast<double>(shape_.k);
    const int products = flops < 1e11 ? 8 : 1;
    return bulk::seconds_of(ways, [&](int way, int round, stream_ref stream) {
      fill(stream);
      for (int i = 0; i < products; ++i) {
        const std::size_t place = static_cast<std::size_t>(round * products + i) % places_;
        run(way, a_.data(place * a_bytes_), b_.data(place * b_bytes_), c_.data(place * c_bytes_),
            stream);
      }
    });
  }

 private:
  static std::size_t bytes(std::int64_t elements, dtype type) {
    return round_up<std::size_t>(static_cast<std::size_t>(elements) * size_of(type), 256);
  }
  /// Fills the operands with random numbers, since zeros would need less power, and so run at a
  /// higher clock. The first call fills, in a round that does not count.
  void fill(stream_ref stream) {
    if (std::exchange(filled_, true)) return;
    const auto normal = [&](const scratch& memory, std::size_t each) {
      const auto count = static_cast<std::int64_t>(each * places_ / size_of(shape_.type));
      gpu::fill_normal({memory.data(), shape_.type, 1, count}, 1, {0, 1}, {0, count}, stream);
    };
    normal(a_, a_bytes_);
    normal(b_, b_bytes_);
  }

  product_shape shape_;
  std::size_t a_bytes_;
  std::size_t b_bytes_;
  std::size_t c_bytes_;
  std::size_t places_;
  scratch a_;
  scratch b_;
  scratch c_;
  bool filled_ = false;
};

}  // namespace

class product::state {
 public:
  explicit state(const product_shape& shape) : shape_(shape) {
    open_library();
    if (library_) library_->settle();
    ends_.push_back({shape.m, {}});
    if (!has_kernels()) return;
    const gpu::gemm_shape of_kernels = kernel_shape(shape, shape.m);
    std::vector<gpu::gemm_plan> plans = plans_of(shape, shape.m);
    plans.resize(std::min(plans.size(), library_ ? timed_plans : 1));
    std::vector<planned> kernels;
    for (const gpu::gemm_plan& plan : plans) kernels.push_back({of_kernels, plan});
    choose(ends_.front(), kernels_of(kernels), operands().get());
  }

  state(const product_shape& shape, const std::vector<std::int64_t>& ends, std::int64_t least)
      : shape_(shape) {
    open_library();
    if (library_) library_->vary_rows(least + 1);
    for (const std::int64_t end : ends) {
      if (end > least) ends_.push_back({end, {}});
    }
    if (has_kernels()) plan_ends();
    set_rows(shape.m);
  }

  void set_rows(std::int64_t rows) {
    now_ = static_cast<std::size_t>(std::ranges::lower_bound(ends_, rows, {}, &row_end::rows) -
                                    ends_.begin());
    if (std::optional<gpu::gemm>& kernel = ends_[now_].kernel) return kernel->set_rows(rows);
    library_->set_rows(rows);
  }

  void run(const void* a, const void* b, void* c, stream_ref stream) const {
    if (const auto& kernel = ends_[now_].kernel) return kernel->run(a, b, c, stream);
    library_->run(a, b, c, stream);
  }

  [[nodiscard]] bool run_gated(const void* a, const void* b, const gpu::gated_product& gates,
                               stream_ref stream) const {
    const auto& kernel = ends_[now_].kernel;
    if (!kernel || !kernel->has_gates()) return false;
    kernel->run_gated(a, b, gates, stream);
    return true;
  }

  [[nodiscard]] std::string text() const {
    const auto own = std::ranges::count_if(ends_, [](const row_end& e) { return !!e.kernel; });
    if (own == 0) return "one GEMM by " + bulk::blas().text;
    if (std::cmp_equal(own, ends_.size())) {
      return ends_.size() > 1 ? "one GEMM by untax" : "one GEMM by untax, " + ends_.front().text();
    }
    std::string rows;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (!ends_[i].kernel || (i > 0 && ends_[i - 1].kernel)) continue;
      std::size_t last = i;
      while (last + 1 < ends_.size() && ends_[last + 1].kernel) ++last;
      rows += fmt::format("{}{} to {}", rows.empty() ? "" : ", ", i > 0 ? ends_[i - 1].rows + 1 : 1,
                          ends_[last].rows);
    }
    return fmt::format("one GEMM by untax for {} rows, else by {}", rows, bulk::blas().text);
  }

 private:
  /// Numbers of rows up to `rows`; cuBLASLt multiplies them if there is no kernel.
  struct row_end {
    std::int64_t rows = 0;
    std::optional<gpu::gemm> kernel;

    [[nodiscard]] std::string text() const { return kernel->plan().text(); }
  };

  struct planned {
    gpu::gemm_shape shape;
    gpu::gemm_plan plan;
  };

  /// The kernels of some plans, which share memory for partial sums.
  [[nodiscard]] std::vector<gpu::gemm> kernels_of(const std::vector<planned>& plans) const {
    std::size_t bytes = 0;
    for (const planned& p : plans)
      bytes = std::max(bytes, gpu::gemm::partials_of_rows(p.shape, p.plan));
    const auto partials = bytes == 0 ? nullptr : std::make_shared<const gpu::partial_sums>(bytes);
    std::vector<gpu::gemm> kernels;
    for (const planned& p : plans)
      kernels.emplace_back(
          p.shape, p.plan, partials,
          gpu::kernel_start{.early = shape_.sharing == 1,
                            .stages = shape_.constant_weights ? p.plan.config.stages : 0});
    return kernels;
  }

  [[nodiscard]] bool has_kernels() const { return shape_.result == shape_.type && !shape_.library; }

  void open_library() {
    if (has_kernels() && (shape_.invariant || shape_.sharing > 1 || !bulk::blas().there)) return;
    library_.emplace(bulk::library_product{
        .m = shape_.m, .n = shape_.n, .k = shape_.k, .type = shape_.type, .result = shape_.result});
  }

  /// The operands for timing; null if nothing is to be timed, or there is no memory for them.
  [[nodiscard]] std::unique_ptr<rotated_operands> operands() const {
    if (!library_ || !is_measured()) return nullptr;
    try {
      return std::make_unique<rotated_operands>(shape_);
    } catch (const error& e) {
      if (e.code() != errc::out_of_memory) throw;
      return nullptr;
    }
  }

  void plan_ends() {
    std::vector<planned> plans;
    for (const row_end& end : ends_) {
      const gpu::gemm_shape shape = kernel_shape(shape_, end.rows);
      plans.push_back({shape, plans_of(shape_, end.rows).front()});
    }
    const std::vector<gpu::gemm> kernels = kernels_of(plans);
    const std::unique_ptr<rotated_operands> timed = operands();
    bool skips = false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      skips = ends_[i].rows > many_rows && i + 1 < ends_.size() && !skips;
      if (skips && timed) {  // as at the end before it
        if (ends_[i - 1].kernel) ends_[i].kernel = kernels[i];
      } else {
        choose(ends_[i], {kernels[i]}, timed.get());
      }
    }
  }

  /// Chooses the quickest among some kernels for the rows of an end and cuBLASLt.
  void choose(row_end& end, const std::vector<gpu::gemm>& kernels, rotated_operands* timed) {
    if (!library_) {
      end.kernel = kernels.front();
    } else if (timed == nullptr) {
      if (end.rows <= few_rows) end.kernel = kernels.front();
    } else {
      if (ends_.size() > 1) library_->set_rows(end.rows);
      const auto ways = static_cast<int>(kernels.size());
      const int least = bulk::least_of(
          timed->seconds(ways + 1, end.rows,
                         [&](int way, const void* a, const void* b, void* c, stream_ref stream) {
                           if (way == ways) return library_->run(a, b, c, stream);
                           kernels[static_cast<std::size_t>(way)].run(a, b, c, stream);
                         }));
      if (least < ways) end.kernel = kernels[static_cast<std::size_t>(least)];
    }
  }

  product_shape shape_;
  std::optional<library_gemm> library_;
  std::vector<row_end> ends_;  ///< ascending to m
  std::size_t now_ = 0;
};

product::product(const product_shape& shape) : state_(std::make_unique<state>(shape)) {}
product::product(const product_shape& shape, const std::vector<std::int64_t>& ends,
                 std::int64_t least)
    : state_(std::make_unique<state>(shape, ends, least)) {}
product::product(product&&) noexcept = default;
product& product::operator=(product&&) noexcept = default;
product::~product() = default;

void product::set_rows(std::int64_t rows) { state_->set_rows(rows); }
void product::run(const void* a, const void* b, void* c, stream_ref stream) const {
  state_->run(a, b, c, stream);
}
bool product::run_gated(const void* a, const void* b, activation_function function,
                        const void* bias, void* out, stream_ref stream) const {
  return state_->run_gated(a, b, {.function = function, .bias = bias, .out = out}, stream);
}
std::string product::text() const { return state_->text(); }

}  // namespace untax
