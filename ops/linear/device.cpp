#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/scratch.hpp"
#include "engines/gpu/activation/activation.hpp"
#include "engines/product/product.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/common/row_table.hpp"
#include "ops/linear/backend.hpp"

namespace untax {
namespace {

product product_for(const world& w, const linear_problem& p, const linear_options& options) {
  const product_shape shape{.m = p.rows,
                            .n = product_columns(p),
                            .k = p.k,
                            .type = p.type,
                            .result = p.type,
                            .invariant = options.invariant,
                            .constant_weights = options.constant_weights,
                            .library = options.library,
                            .sharing = w.ranks_per_gpu()};
  return options.varying_rows ? product(shape, row_ends(p.rows)) : product(shape);
}

/// The backend on the GPU of a rank, which is the current one: a product, and behind it a kernel
/// for bias and function, if there are any.
class device_backend final : public linear_backend {
 public:
  device_backend(world& w, const linear_problem& problem, const linear_options& options)
      : rank_(w.rank()),
        problem_(problem),
        varies_(options.varying_rows),
        invariant_(options.invariant),
        starts_early_(w.ranks_per_gpu() == 1),
        arguments_(linear_name, w),
        product_(product_for(w, problem, options)) {
    gpu::load_activation_kernels();
    if (is_gated(problem.activation))
      gate_and_up_ =
          bulk::scratch(static_cast<std::size_t>(problem.rows * product_columns(problem)) *
                        size_of(problem.type));
  }

  void run(const linear_operands& o, stream_ref given) override {
    require("x", o.x);
    require("weights", o.weights);
    require("out", as_const(o.out));
    arguments_.require("bias", o.bias, alignment);
    const stream_ref stream = own_.unless(given);
    if (varies_ && rows_ != o.x.rows) product_.set_rows(rows_ = o.x.rows);
    if (!ran_gated(o, stream)) run_in_turn(o, stream);
    if (given.handle == nullptr)
      own_.wait(fmt::format("rank {}: {}: a kernel failed", rank_, linear_name));
  }

  [[nodiscard]] std::string text() const override { return product_.text(); }

 private:
  static constexpr std::size_t alignment = 16;

  /// With few rows the product multiplies the gates itself, so that bits would depend on the number
  /// of rows.
  [[nodiscard]] bool ran_gated(const linear_operands& o, stream_ref stream) {
    return is_gated(problem_.activation) && !invariant_ &&
           product_.run_gated(o.x.data, o.weights.data, problem_.activation, o.bias, o.out.data,
                              stream);
  }
  void run_in_turn(const linear_operands& o, stream_ref stream) {
    void* const to = is_gated(problem_.activation) ? gate_and_up_.data() : o.out.data;
    product_.run(o.x.data, o.weights.data, to, stream);
    if (problem_.activation != activation_function::none || o.bias != nullptr) {
      gpu::activate({o.x.rows, problem_.n, problem_.activation, problem_.type, starts_early_}, to,
                    o.bias, o.out.data, stream);
    }
  }

  void require(std::string_view name, const const_matrix& m) {
    arguments_.require_dense(name, m);
    arguments_.require(name, m.data, alignment);
  }

  int rank_;
  linear_problem problem_;
  bool varies_;
  bool invariant_;
  bool starts_early_;
  std::int64_t rows_ = -1;  ///< of the last run
  device_arguments arguments_;
  own_stream own_;
  product product_;
  bulk::scratch gate_and_up_;  ///< the product of a gated function
};

/// The backend of a problem without rows, whose runs do nothing.
class no_rows final : public linear_backend {
 public:
  void run(const linear_operands& /*operands*/, stream_ref /*stream*/) override {}
  [[nodiscard]] std::string text() const override { return "no rows, so nothing runs"; }
};

}  // namespace

process_owned<linear_backend> device_linear(world& w, const linear_problem& problem,
                                            const linear_options& options) {
  require_device_problem(linear_name, w.rank(), problem.type, problem.n, problem.k);
  if (options.library && options.invariant)
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: option library excludes option invariant, since a "
                            "library orders sums by the number of rows",
                            w.rank(), linear_name));
  if (problem.rows == 0) return make_process_owned<no_rows>();
  w.use_device();
  return make_process_owned<device_backend>(w, problem, options);
}

}  // namespace untax
