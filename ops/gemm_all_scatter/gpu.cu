#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/scatter_kernels.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/num_sms.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "ops/common/kernel_start.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/gemm_all_scatter/device.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/lowered.hpp"
#include "ops/gemm_all_scatter/maps.hpp"
#include "ops/gemm_all_scatter/scatter.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_scatter";

const std::vector<gpu::kernel_variant>& variants() {
  static const std::vector<gpu::kernel_variant> all = {
#define UNTAX_KERNEL(name, ...) gpu::variant_of<gpu::tile_config{__VA_ARGS__}, scatter_io>(),
#include "engines/gpu/gemm/sinks/all_copies.def"
#undef UNTAX_KERNEL
  };
  return all;
}

/// All patterns of own kernels.
class device_scatter final : public device_operator {
 public:
  device_scatter(world& w, const gemm_all_scatter_problem& problem, const operator_options& options,
                 scatter_plan plan, std::int64_t between)
      : world_(&w.stable_view()),
        problem_(problem),
        how_(options.how),
        plan_(std::move(plan)),
        columns_(sharding{problem.n, w.size(), shard_granularity}.of(w.rank())),
        io_{.how = gemm_all_scatter_protocol(problem, plan_.protocol)} {
    if (w.size() > gpu::most_ranks) {
      throw error(errc::unsupported,
                  fmt::format("rank {}: {} on GPUs has {} ranks at most; this world has {}",
                              w.rank(), name, gpu::most_ranks, w.size()));
    }
    // A rank without columns of its own takes part in the meetings.
    if (!columns_.empty())
      launcher_.emplace(plan_.gemm, problem.type, gpu::variant_for(variants(), plan_.gemm.config),
                        plan_.comm_ctas, start_of(w, options, false));
    allocate();
    describe(between);
    load();
  }
  ~device_scatter() override {
    try {
      if (gpu::ends_with_others(*world_)) {
        world_->barrier();
        return;
      }
    } catch (const error&) {
      // A stopped world has no meetings; its memory goes with it.
    }
    counters_.abandon();
  }

  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    world_->check();
    io_.moved.run.out = static_cast<std::byte*>(c);
    if (launcher_) describe_matrices(a, weights, c);
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    gpu::require_no_graph(*world_, on);
    gpu::whole_run all(*world_);
    switch (how_) {
      case pattern::bulk_synchronous:
        all([&] { multiply(on); });
        all([&] { scatter_all(io_, moved_, world_->ranks_per_gpu() == 1, on); });
        return;
      case pattern::producer_consumer:
        side_.fork(on);
        all([&] { move_scattered(io_, moved_, plan_.protocol.senders, side_.get()); });
        all([&] { multiply(on); });
        all([&] { side_.join(on); });
        return;
      default:
        if (launcher_ && how_ == pattern::copy_engine)
          return all.all_of([&] { multiply_and_copy(c, on); });
        if (launcher_) return multiply(on);
        // Without columns there is nothing to multiply; others wait for this rank's publishers.
        if (plan_.way == scatter_way::tile_flags)
          return move_scattered(io_, moved_, plan_.protocol.senders, on);
        all([&] { open_scattered(io_, opened_, on); });
        all([&] { close_scattered(io_, closed_, on); });
    }
  }

  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{}: {}, {}", name, name_of(how_), plan_.text());
  }

 private:
  [[nodiscard]] int blocks() const { return launcher_ ? launcher_->blocks() : 0; }

  void allocate() {
    counters_ = world_->allocate_owned_cleared<std::uint64_t>(
        static_cast<std::size_t>(std::max(io_.how.counters(), 1)), "gemm_all_scatter counters");
    // A word of each block of both kernels, and of both meetings; the count of blocks, and of
    // parts.
    const int tiles = io_.how.tiles().count();
    const int words = blocks() + plan_.protocol.senders + 3 + tiles;
    epochs_ = static_cast<std::uint64_t*>(
        own_.allocate(static_cast<std::size_t>(words) * sizeof(std::uint64_t)));
    moved_ = epochs_ + blocks();
    opened_ = moved_ + plan_.protocol.senders;
    closed_ = opened_ + 1;
    io_.done = closed_ + 1;
    io_.parts_done = io_.done + 1;
  }

  void describe(std::int64_t between) {
    gpu::run_arguments& run = io_.moved.run;
    run.world = world_->device_state();
    run.counters = counters_.get();
    run.epochs = epochs_;
    run.between = between;
    run.element_bytes = 2;
    run.name_size = static_cast<int>(std::min(name.size(), sizeof run.name));
    std::memcpy(run.name, name.data(), static_cast<std::size_t>(run.name_size));
    io_.moved.c_stride = problem_.n;
    io_.way = plan_.way;
    io_.in_turn = how_ == pattern::fused_sequential;
    io_.senders = plan_.protocol.senders;
    io_.comm_ctas = plan_.comm_ctas;
    io_.multiplying = launcher_ ? blocks() - plan_.comm_ctas : 0;
    io_.parts = plan_.parts;
    if (plan_.way == scatter_way::tile_flags) io_.sent = sent_tiles::of(io_.how);
    for (int i = 0; i < plan_.streams; ++i) copiers_.emplace_back();
  }

  /// Kernels are loaded, and get their stacks, before any of them spins on a peer.
  void load() {
    gpu::require_queues(*world_);
    scatter_io dry = io_;
    dry.moved.run.launch = -1;
    if (launcher_) launcher_->launch({}, &dry, side_.get());
    move_scattered(dry, moved_, 2, side_.get());
    scatter_all(dry, moved_, false, side_.get());
    open_scattered(dry, opened_, side_.get());
    gpu::require(cudaStreamSynchronize(side_.get()), "cannot run the kernels of a scatter");
  }

  void multiply(cudaStream_t on) {
    if (launcher_) launcher_->launch(row_splits_.front(), &io_, on);
  }

  /// What a row split's kernel has stored goes to all peers while the next ones multiply. The end
  /// of a kernel is the signal.
  void multiply_and_copy(void* c, cudaStream_t on) {
    side_.fork(on);
    open_scattered(io_, opened_, side_.get());
    for (const gpu::side_stream& copies : copiers_) copies.fork(side_.get());
    for (std::size_t i = 0; i < row_splits_.size(); ++i) {
      io_.c[0] = row_splits_[i].c;
      launcher_->launch(row_splits_[i], &io_, on);
      for (const gpu::side_stream& copies : copiers_) copies.fork(on);
      send_row_split(static_cast<std::int64_t>(i), static_cast<std::byte*>(c));
    }
    side_.join(on);
    for (const gpu::side_stream& copies : copiers_) copies.join(on);
    close_scattered(io_, closed_, on);
  }
  void send_row_split(std::int64_t row_split, std::byte* c) const {
    for (int hop = 1; hop < world_->size(); ++hop) {
      const sent_row_split sent =
          row_split_for(problem_, plan_, io_.how, c, io_.moved.run.between, row_split, hop);
      const auto turn = static_cast<std::size_t>(row_split * (world_->size() - 1) + hop);
      const gpu::side_stream& copies = copiers_[turn % copiers_.size()];
      gpu::require(cudaMemcpy2DAsync(sent.to, sent.stride, sent.from, sent.stride, sent.bytes,
                                     sent.rows, cudaMemcpyDefault, copies.get()),
                   "a copy engine cannot send results");
    }
  }

  /// For TMA.
  void describe_matrices(const void* a, const void* weights, void* c) {
    if (a == a_ && weights == weights_ && c == c_) return;
    a_ = a;
    weights_ = weights;
    c_ = c;
    const gpu::gemm_plan& gemm = plan_.gemm;
    const dtype type = problem_.type;
    const scatter_maps maps =
        maps_of(problem_, plan_, io_.how, {a, weights, c, io_.moved.run.between});
    const auto result = [&](const gpu::matrix_at& matrix) {
      return gpu::result_map_of(matrix, type, gemm.config);
    };
    row_splits_.clear();
    for (const scatter_maps::row_split& row_split : maps.row_splits) {
      gpu::gemm_arguments& all = row_splits_.emplace_back();
      all.a = gpu::tensor_map_of(row_split.a, type, a_tma_tile_rows(gemm), read_together(gemm));
      all.b = gpu::tensor_map_of(maps.b, type, b_tma_tile_rows(gemm), read_together(gemm));
      all.c = result(row_split.c);
    }
    for (std::size_t copy = 0; copy < maps.copies.size(); ++copy)
      io_.c[copy] = result(maps.copies[copy]);
    if (maps.tma_tiles.empty()) return;
    io_.own_tma_tiles = gpu::moved_map_of(maps.tma_tiles.front(), type);
    for (std::size_t hop = 1; hop < maps.tma_tiles.size(); ++hop)
      io_.c[hop] = gpu::moved_map_of(maps.tma_tiles[hop], type);
  }

  world* world_;
  gemm_all_scatter_problem problem_;
  pattern how_;
  scatter_plan plan_;
  range columns_;
  std::optional<gpu::gemm_launcher> launcher_;
  scatter_io io_;
  gpu::scratch_memory own_;
  gpu::side_stream side_;
  std::deque<gpu::side_stream> copiers_;
  std::vector<gpu::gemm_arguments> row_splits_;  // maps of the matrices of each
  const void* a_ = nullptr;                      // what they describe, and the next two
  const void* weights_ = nullptr;
  void* c_ = nullptr;
  owned_symmetric<std::uint64_t> counters_;
  std::uint64_t* epochs_ = nullptr;
  std::uint64_t* moved_ = nullptr;
  std::uint64_t* opened_ = nullptr;
  std::uint64_t* closed_ = nullptr;
};

}  // namespace

std::unique_ptr<device_operator> gemm_all_scatter_on_device(world& w,
                                                            const gemm_all_scatter_problem& problem,
                                                            const operator_options& options,
                                                            std::int64_t between) {
  gpu::require_own_gpu(w, options.how);
  auto plans = scatter_plans(problem, w.size(), w.rank(), options, gpu::num_sms_of(w));
  agree_on_lines(w, name, plans.front().agreed());
#ifndef NDEBUG
  require_faultless(problem, plans.front());
#endif
  return std::make_unique<device_scatter>(w, problem, options, std::move(plans.front()), between);
}

}  // namespace untax
