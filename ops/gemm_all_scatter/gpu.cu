#include <optional>
#include <utility>
#include <vector>

#include "engines/gpu/comm/dma_sender.hpp"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/sinks/all_copies.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "ops/common/launched_gemm.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/maps.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_scatter";

using io = scatter_io<gemm_all_scatter_protocol>;

/// The launches of all patterns with own kernels: see `launched_gemm`.
class scatter_launches {
 public:
  scatter_launches(const world& w, const gemm_all_scatter_problem& problem,
                   const operator_options& options, scatter_plan plan, std::int64_t between)
      : problem_(problem),
        how_(options.how),
        plan_(std::move(plan)),
        io_{{{{.how = gemm_all_scatter_protocol(problem, plan_.protocol)}}}},
        between_(between) {
    // A rank without columns of its own has no GEMM, but takes part in the barriers.
    if (!sharding{problem.n, w.size(), shard_granularity}.of(w.rank()).empty())
      gemm_.emplace(plan_.gemm, problem.type,
                    gpu::variant_for<gpu::scatter_kernels, io>(plan_.gemm.config), plan_.comm_ctas,
                    start_of(w, options, false));
  }

  [[nodiscard]] int side_streams() const { return 1 + plan_.streams; }
  [[nodiscard]] const scatter_plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t rows() const { return problem_.m; }

  void allocate(gpu::operator_host& host, gpu::room_pool* rooms) {
    launcher_ = &host.launcher();
    if (gemm_) gemm_->allocate_partials(gpu::partials_bytes(plan_.gemm.config, plan_.rows), rooms);
    // An epoch for each block of both kernels, and for both barriers; the count of blocks, and of
    // parts.
    gpu::run_arguments& run = io_.moved.run;
    run = host.allocate(
        {.threads = gpu::block_threads,
         .counters = static_cast<std::size_t>(io_.how.counters()),
         .own_words = blocks() + plan_.protocol.senders + 3 + io_.how.tiles().count()},
        rooms);
    run.between = between_;
    moved_ = run.epochs + blocks();
    opened_ = moved_ + plan_.protocol.senders;
    closed_ = opened_ + 1;
    io_.done = closed_ + 1;
    io_.parts_done = io_.done + 1;
    describe_plan();
  }

  void launch_dry(cudaStream_t on) const {
    io dry = io_;
    dry.moved.run.launch = -1;
    if (gemm_) gemm_->launch({}, &dry, on);
    move_scattered(dry, moved_, 2, on);
    scatter_all(dry, moved_, false, on);
    meet_scattered(dry, scatter_meeting::opens, opened_, on);
  }

  /// Flagged tiles are those of the most rows that a run has: rows beyond a run's own are written
  /// nowhere. Otherwise tiles are those of the run.
  void set_rows(std::int64_t rows) {
    problem_.m = rows;
    plan_.set_rows(rows);
    if (gemm_) gemm_->set_schedule(plan_.gemm.schedule);
    if (plan_.way != scatter_way::tile_flags)
      io_.how = gemm_all_scatter_protocol(problem_, plan_.protocol);
  }

  [[nodiscard]] gemm_operands bind(const void* a, const void* weights, void* c) {
    io_.moved.run.out = static_cast<std::byte*>(c);
    return {a, weights, c, io_.moved.run.between};
  }

  void describe(const gemm_operands& operands) {
    if (!gemm_) return;
    const gpu::gemm_maps map{plan_.gemm, problem_.type};
    const scatter_maps maps = maps_of(problem_, plan_, io_.how, operands);
    row_splits_.clear();
    for (const scatter_maps::row_split& split : maps.row_splits) {
      gpu::gemm_matrices& all = row_splits_.emplace_back();
      map.describe_operands(all, split.a, maps.b);
      all.c = map.c(split.c);
    }
    io_.c[0] = row_splits_.front().c;
    for (std::size_t i = 0; i < maps.copies.size(); ++i) io_.c[i + 1] = map.c(maps.copies[i]);
    if (!maps.tma_tiles.empty())
      io_.own_tma_tiles = gpu::moved_map_of(maps.tma_tiles.front(), problem_.type);
    for (std::size_t hop = 1; hop < maps.tma_tiles.size(); ++hop)
      io_.c[hop] = gpu::moved_map_of(maps.tma_tiles[hop], problem_.type);
  }

  void launch(void* /*c*/, gpu::whole_run& run, cudaStream_t on) {
    const gpu::side_stream& side = launcher_->side();
    switch (how_) {
      case pattern::bulk_synchronous:
        run([&] { multiply(on); });
        run([&] { scatter_all(io_, moved_, launcher_->starts_early(), on); });
        return;
      case pattern::producer_consumer:
        side.fork(on);
        run([&] { move_scattered(io_, moved_, plan_.protocol.senders, side.get()); });
        run([&] { multiply(on); });
        run([&] { side.join(on); });
        return;
      default:
        if (gemm_ && how_ == pattern::copy_engine)
          return run.all_of([&] { multiply_and_copy(on); });
        if (gemm_) return multiply(on);
        // Without columns there is no GEMM, but peers wait for signals of this rank's publishers.
        if (plan_.way == scatter_way::tile_flags)
          return move_scattered(io_, moved_, plan_.protocol.senders, on);
        run([&] { meet_scattered(io_, scatter_meeting::opens, opened_, on); });
        run([&] { meet_scattered(io_, scatter_meeting::closes, closed_, on); });
    }
  }

 private:
  [[nodiscard]] int blocks() const { return gemm_ ? gemm_->blocks() : 0; }

  void describe_plan() {
    io_.moved.c_stride = problem_.n;
    io_.way = plan_.way;
    io_.in_turn = how_ == pattern::fused_sequential;
    io_.senders = plan_.protocol.senders;
    io_.comm_ctas = plan_.comm_ctas;
    io_.multiplying = gemm_ ? blocks() - plan_.comm_ctas : 0;
    io_.parts = plan_.parts;
    if (plan_.way != scatter_way::tile_flags) return;
    io_.tma_tile = tma_tile_of(io_.how);
    const comm::transfer_lists sent = lists_of(io_.how);
    io_.sent = {launcher_->own_table(sent.entries), launcher_->own_table(sent.begins)};
  }

  void multiply(cudaStream_t on) {
    if (gemm_) gemm_->launch(row_splits_.front(), &io_, on);
  }

  /// The results of each row split are sent to all peers while the next ones multiply. The end of a
  /// kernel is the signal.
  void multiply_and_copy(cudaStream_t on) {
    const gpu::side_stream& side = launcher_->side();
    side.fork(on);
    meet_scattered(io_, scatter_meeting::opens, opened_, side.get());
    for (int i = 1; i <= plan_.streams; ++i) launcher_->side(i).fork(side.get());
    for (std::size_t i = 0; i < row_splits_.size(); ++i) {
      io_.c[0] = row_splits_[i].c;
      gemm_->launch(row_splits_[i], &io_, on);
      for (int copier = 1; copier <= plan_.streams; ++copier) launcher_->side(copier).fork(on);
      send_row_split(i);
    }
    for (int i = 0; i <= plan_.streams; ++i) launcher_->side(i).join(on);
    meet_scattered(io_, scatter_meeting::closes, closed_, on);
  }
  void send_row_split(std::size_t i) const {
    for (int sender = 0; sender < plan_.streams; ++sender) {
      io_.how.send(sender, 1, [&](const step& s) {
        if (s.from.row == static_cast<std::int64_t>(i) * plan_.split_rows)
          gpu::copy_by_dma(io_.moved, s, launcher_->side(1 + sender).get());
      });
    }
  }

  gemm_all_scatter_problem problem_;
  pattern how_;
  scatter_plan plan_;
  std::optional<gpu::gemm_launcher> gemm_;
  io io_;
  std::int64_t between_;
  std::vector<gpu::gemm_matrices> row_splits_;  // the tensor maps of each
  std::uint64_t* moved_ = nullptr;
  std::uint64_t* opened_ = nullptr;
  std::uint64_t* closed_ = nullptr;
  gpu::operator_launcher* launcher_ = nullptr;
};

}  // namespace

std::unique_ptr<device_operator> gemm_all_scatter_on_device(world& w,
                                                            const gemm_all_scatter_problem& problem,
                                                            const operator_options& options,
                                                            std::int64_t between,
                                                            gpu::room_pool* rooms) {
  // A copy within a GPU may need a multiprocessor, and waiting kernels may occupy all of them.
  if (options.how == pattern::copy_engine) gpu::require_own_gpu(w, "copy engines");
  auto plans = scatter_plans(problem, w.size(), w.rank(), options,
                             {gpu::num_sms_of(w), gpu::gpu_here().costs});
  agree_on_lines(w, name, plans.front().agreed());
  return std::make_unique<launched_gemm<scatter_launches>>(
      w, name, options.how, rooms, problem, options, std::move(plans.front()), between);
}

}  // namespace untax
