#include <algorithm>
#include <utility>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/comm/row_sums.hpp"
#include "engines/gpu/comm/sinks/row_partials.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "ops/common/launched_gemm.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/gemm_reduce_common/device.hpp"
#include "ops/gemm_reduce_common/row_plan.hpp"

namespace untax {
namespace {

using io = row_sums_io<gemm_all_scatter_protocol>;
using sums_io = row_sums<gemm_all_scatter_protocol>;

/// A GEMM whose parts go to the owners of rows, which add them, or a kernel after it does: see
/// `launched_gemm`.
class row_sum_launches {
 public:
  row_sum_launches(const world& w, const device_sum& sum, const operator_options& options,
                   row_sums_plan plan, const symmetric_result& result)
      : sum_(sum),
        plan_(std::move(plan)),
        result_(result),
        depth_(sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size),
        gemm_(plan_.gemm, sum.type, gpu::variant_for<gpu::scatter_kernels, io>(plan_.gemm.config),
              0, start_of(w, options, false)),
        io_{{{{.how = plan_.meetings()}}}},
        adds_{{.how = plan_.meetings()}} {}

  [[nodiscard]] int side_streams() const { return 1; }
  [[nodiscard]] const row_sums_plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t rows() const { return sum_.m; }

  void allocate(gpu::operator_host& host, gpu::room_pool* rooms) {
    launcher_ = &host.launcher();
    gemm_.allocate_partials(gpu::partials_bytes(plan_.gemm.config, plan_.rows), rooms);
    // An epoch for each block, and the counts of blocks.
    const int blocks = gemm_.blocks();
    gpu::run_arguments& run = io_.moved.run;
    run =
        host.allocate({.threads = gpu::block_threads,
                       .inbox = {{static_cast<std::size_t>(plan_.slab_bytes(sum_.n) * plan_.world),
                                  gpu::room_content::opened}},
                       .counters = static_cast<std::size_t>(io_.how.counters()),
                       .own_words = blocks + 3},
                      rooms);
    run.between = result_.between;
    io_.sent_all = run.epochs + blocks;
    io_.summed = io_.sent_all + 1;
    io_.slab_bytes = plan_.slab_bytes(sum_.n);
    io_.passes_on = plan_.passes_on;
    io_.multiplying = blocks;
    io_.moved.c_stride = sum_.n;
    adds_.moved = io_.moved;
    adds_.slab_bytes = io_.slab_bytes;
    adds_.passes_on = plan_.passes_on;
    adds_.done = io_.summed + 1;
    adds_.epoch = run.epochs;
    adds_.type = sum_.type;
    if (depth_ == 0) {
      const std::int64_t words = std::max(sum_.m, sum_.n) * zero_columns * 2 / 8;
      zeros_ = launcher_->own_words(static_cast<int>(words));
    }
    describe_rows();
  }

  void launch_dry(cudaStream_t on) const {
    io dry = io_;
    dry.moved.run.launch = -1;
    gemm_.launch({}, &dry, on);
    sums_io adds = adds_;
    adds.moved.run.launch = -1;
    add_rows(adds, 1, false, on);
  }

  /// Slabs are those of the most rows. Rows of tiles beyond those of a run are stored nowhere.
  void set_rows(std::int64_t rows) {
    sum_.m = rows;
    plan_.set_rows(rows);
    gemm_.set_schedule(plan_.gemm.schedule);
    describe_rows();
    sums_ = nullptr;
  }

  [[nodiscard]] gemm_operands bind(const void* a, const void* weights, void* c) {
    void* const sums = plan_.passes_on ? result_.data : c;
    io_.moved.run.out = adds_.moved.run.out = static_cast<std::byte*>(sums);
    return {a, weights};
  }

  void describe(const gemm_operands& operands) {
    const gpu::gemm_maps map{plan_.gemm, sum_.type};
    // A rank without a part of k multiplies zeros.
    const bool multiplies = depth_ > 0;
    const std::int64_t depth = multiplies ? depth_ : zero_columns;
    map.describe_operands(matrices_, {multiplies ? operands.a : zeros_, sum_.m, depth, depth},
                          {multiplies ? operands.weights : zeros_, sum_.n, depth, depth});
    for (int hop = 0; hop < plan_.world; ++hop) {
      const gpu::matrix_at slab = plan_.slab_at(io_.moved.run.inbox, hop, sum_.n);
      if (slab.rows > 0) io_.c[hop] = map.c(slab);
    }
    matrices_.c = matrices_.a;  // not used for stores
  }

  void launch(void* c, gpu::whole_run& run, cudaStream_t on) {
    void* const sums = io_.moved.run.out;
    if (io_.adds && sums != sums_) describe_sums(sums);
    run([&] { gemm_.launch(matrices_, &io_, on); });
    if (plan_.adds_behind)
      run([&] { add_rows(adds_, plan_.adding, launcher_->starts_early(), on); });
    launcher_->copy_result(c, sums, sum_.result_bytes(), run, on);
  }

 private:
  void describe_rows() {
    io_.rotation = plan_.rotation;
    io_.owned = plan_.owned;
    io_.adds = !plan_.adds_behind;
    adds_.owned = plan_.owned;
  }

  /// Makes the maps of own rows of C, or of all rows of the results of all ranks.
  void describe_sums(const void* sums) {
    const gpu::gemm_maps map{plan_.gemm, sum_.type};
    const int rank = plan_.rank;
    const int rows =
        plan_.passes_on ? plan_.owned.m : plan_.owned.end(rank) - plan_.owned.first(rank);
    for (int hop = 0; rows > 0 && hop < (plan_.passes_on ? plan_.world : 1); ++hop) {
      const int peer = receiver_at_hop(rank, hop, plan_.world);
      io_.sums[hop] = map.c({static_cast<const std::byte*>(sums) + (peer - rank) * result_.between,
                             rows, sum_.n, sum_.n});
    }
    sums_ = sums;
  }

  static constexpr std::int64_t zero_columns = 8;

  device_sum sum_;
  row_sums_plan plan_;
  symmetric_result result_;
  std::int64_t depth_;
  gpu::gemm_launcher gemm_;
  io io_;
  sums_io adds_;
  gpu::gemm_matrices matrices_;
  const void* sums_ = nullptr;  // what the maps in `io_.sums` describe
  const std::uint64_t* zeros_ = nullptr;
  gpu::operator_launcher* launcher_ = nullptr;
};

}  // namespace

std::unique_ptr<device_operator> row_sums_on_device(world& w, const device_sum& sum,
                                                    const operator_options& options,
                                                    const symmetric_result& result,
                                                    gpu::room_pool* rooms) {
  auto plans =
      row_sums_plans(sum, w.size(), w.rank(), options, {gpu::num_sms_of(w), gpu::gpu_here().costs});
  agree_on_lines(w, sum.operator_name, plans.front().agreed());
  return std::make_unique<launched_gemm<row_sum_launches>>(
      w, sum.operator_name, options.how, rooms, sum, options, std::move(plans.front()), result);
}

}  // namespace untax
