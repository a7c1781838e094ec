#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/sum_kernels.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/gpu/launch/operator_launcher.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/rooms/shared_room.hpp"
#include "ops/common/kernel_start.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/gemm_reduce_common/device.hpp"

namespace untax {
namespace {

/// The operator, for all patterns with own kernels.
class device_sums final : public device_operator {
 public:
  device_sums(world& w, const device_sum& sum, const operator_options& options, sums_plan plan,
              const symmetric_result& result, gpu::room_pool* rooms)
      : sum_(sum),
        name_(sum.operator_name),
        how_(options.how),
        plan_(std::move(plan)),
        result_(result),
        depth_(sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size),
        launcher_(w, name_, {.side = 1}) {
    launcher_.require_at_most(gpu::most_ranks);
    // A rank without a part of k sends zeros.
    if (depth_ > 0)
      gemm_.emplace(plan_.gemm, sum.type,
                    gpu::variant_for<gpu::sums_kernels, gpu::summed_io>(plan_.gemm.config),
                    plan_.comm_ctas, start_of(w, options, false));
    allocate(rooms);
    launcher_.dry_run([&](cudaStream_t on) {
      gpu::summed_io dry = io_;
      dry.moved.run.launch = -1;
      if (gemm_) gemm_->launch({}, &dry, on);
      gpu::add_in_own_grid(dry, added_, plan_.own_grid, on);
    });
  }

  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    gpu::whole_run all = launcher_.begin(on);
    room_.enter(all, on);
    io_.moved.run.out = static_cast<std::byte*>(plan_.how.passes_on ? result_.data : c);
    add_up(a, weights, all, on);
    launcher_.copy_result(c, io_.moved.run.out, sum_.result_bytes(), all, on);
  }

  /// Slabs and tiles are those of the most rows. Rows beyond those of a run have no owner.
  void set_rows(std::int64_t rows) override {
    if (rows == sum_.m) return;
    sum_.m = rows;
    plan_.set_rows(rows);
    io_.how = plan_.how;
    io_.rotation = plan_.how.rotation();
    io_.lands_by_tma = lands();
    operands_ = {};
  }

  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{}: {}, {}", name_, name_of(how_), plan_.text());
  }

 private:
  void add_up(const void* a, const void* weights, gpu::whole_run& all, cudaStream_t on) {
    if (!gemm_) return all([&] { gpu::add_in_own_grid(io_, added_, plan_.own_grid, on); });
    if (const gemm_operands now{a, weights, io_.moved.run.out}; now != operands_)
      describe_matrices(now);
    if (!plan_.beside) return all([&] { gemm_->launch(maps_, &io_, on); });
    const gpu::side_stream& side = launcher_.side();
    side.fork(on);
    all([&] { gpu::add_in_own_grid(io_, added_, plan_.own_grid, side.get()); });
    all([&] { gemm_->launch(maps_, &io_, on); });
    all([&] { side.join(on); });
  }

  void allocate(gpu::room_pool* rooms) {
    const gpu::sum_fragments& how = plan_.how;
    io_.how = how;
    io_.rotation = how.rotation();
    io_.type = sum_.type;
    io_.slab_bytes = how.slab_bytes();
    io_.adding_warps = plan_.adding_warps(gemm_.has_value());
    io_.comm_ctas = plan_.comm_ctas;
    io_.mma_ctas_add = plan_.comm_ctas == 0 && !plan_.beside;
    io_.own_in_registers = io_.mma_ctas_add && how.halves && how.world() == 2;
    // No GEMM follows the last tile of a block: there stores from registers end sooner.
    io_.sends_by_tma = how.halves && !how.everywhere && !has_one_tile();
    io_.lands_by_tma = lands();
    io_.polls = polls();
    io_.sends_zeros = !gemm_;
    io_.multiplying = gemm_ ? gemm_->blocks() - plan_.comm_ctas : 0;
    gpu::run_arguments& run = io_.moved.run;
    run = launcher_.arguments(2, gpu::block_threads);
    run.between = result_.between;
    room_ = gpu::room_pool::take(rooms, launcher_, static_cast<std::size_t>(how.inbox_bytes()),
                                 gpu::room_content::words);
    run.inbox = room_.memory();
    run.counters = launcher_.symmetric_memory<std::uint64_t>(
        static_cast<std::size_t>(how.counters()), "counters");
    io_.moved.c_stride = sum_.n;
    // An epoch for each block of both kernels, and the count of warps.
    const int blocks = gemm_ ? gemm_->blocks() : 0;
    run.epochs = launcher_.own_words(blocks + plan_.own_grid + 1);
    added_ = run.epochs + blocks;
    io_.done = added_ + plan_.own_grid;
  }

  /// Whether each block has one tile at most.
  [[nodiscard]] bool has_one_tile() const {
    const gpu::tile_schedule& order = plan_.gemm.schedule;
    return order.tiles() <= order.clusters;
  }
  /// How often an MMA warp polls for peers' partials of a tile. With one tile it has nothing else
  /// to do. Where every rank adds all of C, nothing has arrived when a tile ends.
  [[nodiscard]] int polls() const {
    if (!io_.mma_ctas_add) return 0;
    if (has_one_tile()) return io_.own_in_registers ? patience : 0;
    return plan_.how.everywhere ? 0 : 1;
  }

  /// Whether TMA loads the partials of peers for own rows, and stores the sums. If a block has one
  /// narrow tile only, registers get all words of a peer sooner.
  [[nodiscard]] bool lands() const {
    const gpu::sum_fragments& how = io_.how;
    if (io_.own_in_registers && has_one_tile() && how.parts <= most_parts_in_registers)
      return false;
    return gpu::can_stage(plan_.gemm.config) && how.halves && !how.everywhere && io_.mma_ctas_add &&
           how.world() > 1 && own_rows() > 0 && how.n % 8 == 0;
  }
  [[nodiscard]] std::int64_t own_rows() const {
    return io_.how.end_row(io_.how.rank()) - io_.how.first_row(io_.how.rank());
  }

  /// Makes the tensor maps. Sums that TMA stores go into this rank's C, or into that of all ranks.
  void describe_matrices(const gemm_operands& operands) {
    const gpu::gemm_maps map{plan_.gemm, sum_.type};
    map.describe_operands(maps_, {operands.a, sum_.m, depth_, depth_},
                          {operands.weights, sum_.n, depth_, depth_});
    maps_.c = maps_.a;
    const gpu::sum_fragments& how = io_.how;
    const std::int64_t first = how.passes_on ? how.first_row(how.rank()) * sum_.n * 2 : 0;
    for (int hop = 0; io_.lands_by_tma && hop < (how.passes_on ? how.world() : 1); ++hop) {
      const int peer = receiver_at_hop(how.rank(), hop, how.world());
      const auto* const c =
          static_cast<const std::byte*>(operands.c) + first + (peer - how.rank()) * result_.between;
      io_.c[hop] = gpu::tensor_map_of({c, own_rows(), sum_.n, sum_.n}, sum_.type, gpu::landed_form);
    }
    operands_ = operands;
  }

  static constexpr int most_parts_in_registers = 16;
  static constexpr int patience = 64;  // polls, of most of a microsecond each

  device_sum sum_;
  std::string name_;
  pattern how_;
  sums_plan plan_;
  symmetric_result result_;
  std::int64_t depth_;
  std::optional<gpu::gemm_launcher> gemm_;
  gpu::summed_io io_;
  gpu::gemm_matrices maps_;
  gemm_operands operands_;  // what the maps describe
  std::uint64_t* added_ = nullptr;
  gpu::plan_room room_;
  gpu::operator_launcher launcher_;  // destroyed first
};

/// The product, which is the sum of one rank.
class lonely_sum final : public device_operator {
 public:
  lonely_sum(const device_sum& sum, pattern how)
      : name_(sum.operator_name), how_(how), gemm_({sum.m, sum.n, sum.k, sum.type}) {}

  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    gemm_.run(a, weights, c, stream);
  }
  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{}: {}, one rank: the product is the sum; {}", name_, name_of(how_),
                       gemm_.plan().text());
  }

 private:
  std::string name_;
  pattern how_;
  gpu::gemm gemm_;
};

}  // namespace

std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& sum,
                                                const operator_options& options,
                                                const symmetric_result& result,
                                                gpu::room_pool* rooms) {
  if (options.how == pattern::fused_warp_specialized)
    return row_sums_on_device(w, sum, options, result, rooms);
  auto plans =
      sums_plans(sum, w.size(), w.rank(), options, {gpu::num_sms_of(w), gpu::gpu_here().costs});
  agree_on_lines(w, sum.operator_name, plans.front().agreed());
  return std::make_unique<device_sums>(w, sum, options, std::move(plans.front()), result, rooms);
}

std::unique_ptr<device_operator> lonely_sum_on_device(world& /*w*/, const device_sum& sum,
                                                      pattern how) {
  return std::make_unique<lonely_sum>(sum, how);
}

}  // namespace untax
