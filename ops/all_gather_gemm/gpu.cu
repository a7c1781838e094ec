#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/dma_sender.hpp"
#include "engines/gpu/comm/gather_kernels.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/num_sms.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "ops/all_gather_gemm/device.hpp"
#include "ops/all_gather_gemm/gather.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/all_gather_gemm/validate.hpp"
#include "ops/common/kernel_start.hpp"
#include "ops/common/plan_agreement.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax {
namespace {

gpu::kernel_variant variant_of(const gather_plan& plan) {
  static const std::vector<gpu::kernel_variant> usual = {
#define UNTAX_KERNEL(name, ...) gpu::variant_of<gpu::tile_config{__VA_ARGS__}, gather_io>(),
#include "engines/gpu/gemm/sources/gathered.def"
#undef UNTAX_KERNEL
  };
  static const std::vector<gpu::kernel_variant> of_packets = {
#define UNTAX_KERNEL(name, ...) gpu::variant_of<gpu::tile_config{__VA_ARGS__}, packet_gather>(),
#include "engines/gpu/gemm/sources/packets.def"
#undef UNTAX_KERNEL
  };
  return gpu::variant_for(plan.packets ? of_packets : usual, plan.gemm.config);
}

/// All patterns of own kernels.
class device_gather final : public device_operator {
 public:
  device_gather(world& w, const all_gather_gemm_problem& problem, const operator_options& options,
                gather_plan plan)
      : world_(&w.stable_view()),
        problem_(problem),
        how_(options.how),
        plan_(std::move(plan)),
        protocol_(problem, plan_.protocol),
        launcher_(plan_.gemm, problem.type, variant_of(plan_), plan_.comm_ctas,
                  start_of(w, options, problem.gather == gather_axis::rows && !plan_.packets)),
        io_{{.how = protocol_}, plan_.packets ? packet_panel::of(protocol_) : packet_panel()} {
    if (w.size() > gpu::most_ranks) {
      throw error(errc::unsupported,
                  fmt::format("rank {}: all_gather_gemm on GPUs has {} ranks at most; this world "
                              "has {}",
                              w.rank(), gpu::most_ranks, w.size()));
    }
    allocate();
    describe();
    load();
  }
  ~device_gather() override {
    try {
      if (gpu::ends_with_others(*world_)) {
        world_->barrier();
        return;
      }
    } catch (const error&) {
      // A stopped world has no meetings; its memory goes with it.
    }
    counters_.abandon();
    inbox_.abandon();
  }

  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    world_->check();
    if (a != a_ || weights != weights_ || c != c_) describe_matrices(a, weights, c);
    io_.moved.run.in = static_cast<const std::byte*>(a);
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    gpu::require_no_graph(*world_, on);
    gpu::whole_run all(*world_);
    if (how_ == pattern::bulk_synchronous) all([&] { gather(on); });
    if (how_ == pattern::producer_consumer) {
      side_.fork(on);
      all([&] { move_gathered(io_, sender_epochs_, plan_.own_grid, side_.get()); });
    }
    if (how_ == pattern::copy_engine) all.all_of([&] { start_copies(on); });
    all([&] { launcher_.launch(maps_, &io_, on); });
    all([&] { join_sides(on); });
  }

  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("all_gather_gemm: {}, {}", name_of(how_), plan_.text());
  }

 private:
  void allocate() {
    const gather_bytes bytes = bytes_of(plan_, protocol_);
    inbox_ = world_->allocate_owned_cleared<std::byte>(
        std::max<std::size_t>(bytes.inbox + bytes.outbox, 16), "all_gather_gemm inbox");
    counters_ = world_->allocate_owned_cleared<std::uint64_t>(
        static_cast<std::size_t>(std::max(protocol_.counters(), 1)), "all_gather_gemm counters");
    // A word of each block of both kernels; then the count of blocks, and what copy engines say.
    const auto words = static_cast<std::size_t>(launcher_.blocks() + plan_.own_grid + 2);
    epochs_ = static_cast<std::uint64_t*>(own_.allocate(words * sizeof(std::uint64_t)));
    sender_epochs_ = epochs_ + launcher_.blocks();
    io_.done = epochs_ + words - 2;
    if (how_ == pattern::copy_engine) {
      io_.next_use = epochs_ + words - 1;
      constexpr std::uint64_t first = 1;
      gpu::require(cudaMemcpy(io_.next_use, &first, sizeof first, cudaMemcpyHostToDevice),
                   "cannot prepare the signals of copy engines");
    }
    for (int i = 0; i < plan_.streams; ++i) copiers_.emplace_back();
    describe_moved(io_.moved, plan_, protocol_);
  }

  void describe() {
    gpu::run_arguments& run = io_.moved.run;
    constexpr std::string_view name = "all_gather_gemm";
    run.world = world_->device_state();
    run.inbox = inbox_.get();
    run.counters = counters_.get();
    run.epochs = epochs_;
    run.element_bytes = 2;
    run.name_size = static_cast<int>(std::min(name.size(), sizeof run.name));
    std::memcpy(run.name, name.data(), static_cast<std::size_t>(run.name_size));
    io_.who = plan_.who;
    io_.tma_tiles = plan_.tma_tiles;
    io_.senders = plan_.protocol.senders;
    io_.rate_limit = plan_.rate_limit;
    io_.comm_ctas = plan_.comm_ctas;
    io_.multiplying = launcher_.blocks() - plan_.comm_ctas;
    io_.awaited = how_ == pattern::bulk_synchronous;
    io_.segments = gather_segments::of(plan_, protocol_);
    io_.arrivals = arrival_grid::of(protocol_);
    io_.sending = sending_grid::of(protocol_);
    io_.polled = plan_.polls;
    bulk_ = {io_.moved, protocol_.sets(), plan_.protocol.senders, io_.sending,
             receiving_grid::of(protocol_)};
  }

  /// Kernels are loaded, and get their stacks, before any of them spins on a peer.
  void load() {
    gpu::require_queues(*world_);
    gpu::gemm_arguments nothing{};
    packet_gather dry = io_;
    dry.moved.run.launch = -1;
    launcher_.launch(nothing, &dry, side_.get());
    move_gathered(dry, sender_epochs_, 2, side_.get());
    bulk_gather dry_too = bulk_;
    dry_too.moved.run.launch = -1;
    gather_all(dry_too, sender_epochs_, false, side_.get());
    gather_all_by_tma(dry, bulk_.receiving, sender_epochs_, 2, false, side_.get());
    gpu::require(cudaStreamSynchronize(side_.get()), "cannot run the kernels of a gather");
  }

  void join_sides(cudaStream_t on) const {
    if (how_ == pattern::producer_consumer) side_.join(on);
    for (const copier& c : copiers_) {
      c.copies.join(on);
      c.signals.join(on);
    }
  }

  /// Of bulk_synchronous: all of A, before the GEMM.
  void gather(cudaStream_t on) {
    const bool early = world_->ranks_per_gpu() == 1;
    if (plan_.tma_tiles)
      return gather_all_by_tma(io_, bulk_.receiving, sender_epochs_, plan_.own_grid, early, on);
    bulk_.moved.run.in = io_.moved.run.in;
    gather_all(bulk_, sender_epochs_, early, on);
  }

  /// Each stream carries out the program of one sender. What a rank sends to itself goes before the
  /// kernel: a copy within a GPU may need a multiprocessor, and the kernel takes them all.
  void start_copies(cudaStream_t on) const {
    const gpu::dma_sender own(io_.moved, io_.next_use, on, [on](cudaStream_t) { return on; });
    for (const copier& c : copiers_) {
      c.copies.fork(on);
      c.signals.fork(on);
    }
    int sender = 0;
    for (const copier& c : copiers_) {
      const gpu::dma_sender others(io_.moved, io_.next_use, c.copies.get(),
                                   [&](cudaStream_t copies) {
                                     c.signals.fork(copies);
                                     return c.signals.get();
                                   });
      // There is one set of rooms, so every run is like the first.
      protocol_.push({sender++, plan_.streams}, 1,
                     [&](const step& s) { s.to.rank == world_->rank() ? own(s) : others(s); });
    }
  }

  /// Of the caller's matrices for the copy engine; those of segments in the io.
  void describe_matrices(const void* a, const void* weights, void* c) {
    a_ = a;
    weights_ = weights;
    c_ = c;
    const gpu::gemm_plan& gemm = plan_.gemm;
    const dtype type = problem_.type;
    const gather_maps maps = maps_of(problem_, plan_, protocol_, {a, weights, c}, inbox_.get());
    const auto map = [&](const gpu::matrix_at& matrix, int tma_tile_rows) {
      return gpu::tensor_map_of(matrix, type, tma_tile_rows, read_together(gemm));
    };
    maps_.b = map(maps.b, b_tma_tile_rows(gemm));
    maps_.c = gpu::result_map_of(maps.c, type, gemm.config);
    for (std::size_t i = 0; i < maps.a.size(); ++i)
      io_.a[i] = map(maps.a[i], a_tma_tile_rows(gemm));
    for (std::size_t i = 0; i < maps.b_or_c.size(); ++i)
      io_.b_or_c[i] = protocol_.by_rows() ? gpu::result_map_of(maps.b_or_c[i], type, gemm.config)
                                          : map(maps.b_or_c[i], b_tma_tile_rows(gemm));
    maps_.a = io_.a[0];
    if (maps.inbox_tma_tiles.empty()) return;
    io_.shard_tma_tiles = gpu::moved_map_of(maps.shard_tma_tiles, type);
    for (std::size_t peer = 0; peer < maps.inbox_tma_tiles.size(); ++peer)
      io_.inbox_tma_tiles[peer] = gpu::moved_map_of(maps.inbox_tma_tiles[peer], type);
  }

  world* world_;
  all_gather_gemm_problem problem_;
  pattern how_;
  gather_plan plan_;
  all_gather_gemm_protocol protocol_;
  gpu::gemm_launcher launcher_;
  packet_gather io_;  // those that send no packets take what it is based on
  bulk_gather bulk_;  // of bulk_synchronous
  gpu::gemm_arguments maps_{};
  const void* a_ = nullptr;  // what the maps describe, and the next two
  const void* weights_ = nullptr;
  void* c_ = nullptr;
  gpu::scratch_memory own_;
  gpu::side_stream side_;
  struct copier {
    gpu::side_stream copies;
    gpu::side_stream signals;
  };
  std::deque<copier> copiers_;
  owned_symmetric<std::byte> inbox_;
  owned_symmetric<std::uint64_t> counters_;
  std::uint64_t* epochs_ = nullptr;
  std::uint64_t* sender_epochs_ = nullptr;
};

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_on_device(world& w,
                                                           const all_gather_gemm_problem& problem,
                                                           const operator_options& options) {
  gpu::require_own_gpu(w, options.how);
  auto plans = gather_plans(problem, w.size(), w.rank(), options, gpu::num_sms_of(w));
  agree_on_lines(w, "all_gather_gemm", plans.front().agreed());
#ifndef NDEBUG
  require_faultless(problem, plans.front());
#endif
  return std::make_unique<device_gather>(w, problem, options, std::move(plans.front()));
}

}  // namespace untax
