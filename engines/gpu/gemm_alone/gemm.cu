#include "engines/gpu/gemm_alone/gemm.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/gemm/variant.hpp"
#include "engines/gpu/launch/operator_trace.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {
namespace {

/// TMA reads and writes rows that begin at multiples of 16 bytes, so of this many elements.
constexpr std::int64_t row_step = 8;

gemm_shape padded(const gemm_shape& s) {
  return {s.m, round_up(s.n, row_step), round_up(s.k, row_step), s.type, s.invariant};
}

/// A copy of a matrix with longer rows than the caller's, which end with zeros.
class padded_matrix {
 public:
  padded_matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride)
      : rows_(static_cast<std::size_t>(rows)),
        columns_(static_cast<std::size_t>(columns) * 2),
        stride_(static_cast<std::size_t>(stride) * 2),
        data_(memory_.allocate(rows_ * stride_, "a GEMM of padded rows")) {}

  [[nodiscard]] void* data() const noexcept { return data_; }
  void read(const void* from, cudaStream_t s) const { copy(data_, stride_, from, columns_, s); }
  void write(void* to, cudaStream_t s) const { copy(to, columns_, data_, stride_, s); }

 private:
  void copy(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
            cudaStream_t stream) const {
    gpu::require(cudaMemcpy2DAsync(to, to_stride, from, from_stride, columns_, rows_,
                                   cudaMemcpyDeviceToDevice, stream),
                 "cannot copy a matrix whose rows TMA cannot reach");
  }

  scratch_memory memory_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t stride_;
  void* data_;
};

}  // namespace

class gemm::launcher {
 public:
  launcher(const gemm_shape& shape, const gemm_plan& plan)
      : shape_(shape),
        room_(padded(shape)),
        launcher_(plan, shape.type, variant_for<gemm_kernels, local_io>(plan.config), 0) {
    launcher_.allocate_partials(partials_bytes(plan));
    if (room_.k != shape.k) {
      a_.emplace(shape.m, shape.k, room_.k);
      b_.emplace(shape.n, shape.k, room_.k);
    }
    if (room_.n != shape.n) c_.emplace(shape.m, shape.n, room_.n);
  }
  launcher(const gemm_shape& shape, const gemm_plan& plan,
           std::shared_ptr<const partial_sums> partials, const kernel_start& start)
      : shape_(shape),
        room_(shape),
        launcher_(plan, shape.type, variant_for<gemm_kernels, local_io>(plan.config), 0, start),
        capacity_(capacity_of(plan, !shape.invariant)) {
    if (partials) launcher_.share_partials(std::move(partials));
  }

  void set_rows(std::int64_t rows) {
    const tile_config& config = plan().config;
    shape_.m = room_.m = rows;
    launcher_.set_schedule(schedule_of_rows(config, capacity_, rows));
    launcher_.set_multicast_rows(multicast_rows_of(config, config.swap_ab ? rows : room_.n));
  }

  void run(const void* a, const void* b, void* c, cudaStream_t stream) const {
    if (a_) {
      a_->read(a, stream);
      b_->read(b, stream);
    }
    multiply(a_ ? a_->data() : a, b_ ? b_->data() : b, c_ ? c_->data() : c, {}, stream);
    if (c_) c_->write(c, stream);
  }
  void run_gated(const void* a, const void* b, const gated_product& gates,
                 cudaStream_t stream) const {
    // The tensor map of C is not used.
    multiply(a, b, gates.out,
             {.out = gates.out,
              .bias = gates.bias,
              .rows = static_cast<int>(shape_.m),
              .columns = static_cast<int>(shape_.n / 2),
              .function = gates.function},
             stream);
  }

  [[nodiscard]] const gemm_plan& plan() const noexcept { return launcher_.plan(); }

 private:
  void multiply(const void* a, const void* b, void* c, const gated_output& gated,
                cudaStream_t stream) const {
    const gemm_plan& p = plan();
    const gemm_maps map{p, room_.type};
    gemm_matrices maps;
    map.describe_operands(maps, {a, room_.m, room_.k, room_.k}, {b, shape_.n, room_.k, room_.k});
    maps.c = map.c({c, room_.m, room_.n, room_.n});
    local_io io;
    io.gated = gated;
    static_cast<launch_trace&>(io) = trace_.begin_run(stream);
    launcher_.launch(maps, &io, stream);
  }

  gemm_shape shape_;
  gemm_shape room_;  // as the kernel sees it
  gemm_launcher launcher_;
  row_capacity capacity_;  // where rows vary
  lone_trace trace_{"gemm", block_threads};
  std::optional<padded_matrix> a_;
  std::optional<padded_matrix> b_;
  std::optional<padded_matrix> c_;
};

gemm::gemm(const gemm_shape& shape)
    : gemm(shape, plans_by_model(padded(shape), gpu_here()).front()) {}
gemm::gemm(const gemm_shape& shape, const gemm_plan& plan)
    : launcher_(std::make_shared<launcher>(shape, plan)) {}
gemm::gemm(const gemm_shape& shape, const gemm_plan& plan,
           std::shared_ptr<const partial_sums> partials, const kernel_start& start)
    : launcher_(std::make_shared<launcher>(shape, plan, std::move(partials), start)) {}

std::size_t gemm::partials_of_rows(const gemm_shape& shape, const gemm_plan& plan) {
  return partials_bytes(plan.config, capacity_of(plan, !shape.invariant));
}

void gemm::set_rows(std::int64_t rows) { launcher_->set_rows(rows); }

void gemm::run(const void* a, const void* b, void* c, stream_ref stream) const {
  launcher_->run(a, b, c, static_cast<cudaStream_t>(stream.handle));
}

bool gemm::has_gates() const noexcept { return gpu::has_gates(plan().config); }
void gemm::run_gated(const void* a, const void* b, const gated_product& gates,
                     stream_ref stream) const {
  launcher_->run_gated(a, b, gates, static_cast<cudaStream_t>(stream.handle));
}

const gemm_plan& gemm::plan() const noexcept { return launcher_->plan(); }

}  // namespace untax::gpu
