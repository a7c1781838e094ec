#include <type_traits>
#include <utility>
#include <vector>

#include "engines/gpu/comm/dma_sender.hpp"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/sources/gathered.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/common/launched_gemm.hpp"
#include "ops/common/plan_agreement.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "all_gather_gemm";

using chunk_args = gather_io<all_gather_gemm_protocol>;
using packet_args = packet_gather_io<all_gather_gemm_protocol>;
/// Whether two structs of arguments have the same parts, in the order of `gemm_io`, so that every
/// member lies at the same place in both.
template <class Args, class Other>
constexpr bool same_layout =
    sizeof(Args) == sizeof(Other) &&
    std::is_same_v<typename Args::run, typename Other::run>&& std::is_same_v<
        typename Args::senders_type::arguments, typename Other::senders_type::arguments>&& std::
        is_same_v<typename Args::source_type::arguments,
                  typename Other::source_type::arguments>&& std::
            is_same_v<typename Args::sink_type::arguments, typename Other::sink_type::arguments>;
static_assert(same_layout<chunk_args, packet_args>);  // kernels of packets are given `chunk_args`

gpu::kernel_variant variant_of(const gather_plan& plan) {
  return plan.packets ? gpu::variant_for<gpu::packet_kernels, packet_args>(plan.gemm.config)
                      : gpu::variant_for<gpu::gather_kernels, chunk_args>(plan.gemm.config);
}

/// The launches of all patterns with own kernels: see `launched_gemm`.
class gather_launches {
 public:
  gather_launches(const world& w, const all_gather_gemm_problem& problem,
                  const operator_options& options, gather_plan plan)
      : problem_(problem),
        how_(options.how),
        plan_(std::move(plan)),
        protocol_(problem, plan_.protocol),
        gemm_(plan_.gemm, problem.type, variant_of(plan_), plan_.comm_ctas,
              start_of(w, options, problem.gather == gather_axis::rows && !plan_.packets)),
        io_{{{{.how = protocol_}}}} {}

  [[nodiscard]] int side_streams() const { return 1 + 2 * plan_.streams; }
  [[nodiscard]] const gather_plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t rows() const { return problem_.m; }

  void allocate(gpu::operator_host& host, gpu::room_pool* rooms) {
    launcher_ = &host.launcher();
    gemm_.allocate_partials(gpu::partials_bytes(plan_.gemm.config, plan_.rows), rooms);
    const gather_bytes bytes = bytes_of(plan_, protocol_);
    // An epoch for each block of both kernels, the count of blocks, and the value with which copy
    // engines signal.
    gpu::run_arguments& run = io_.moved.run;
    run = host.allocate(
        {.threads = gpu::block_threads,
         .inbox = {{bytes.inbox + bytes.outbox,
                    plan_.packets ? gpu::room_content::packets : gpu::room_content::counted}},
         .counters = static_cast<std::size_t>(protocol_.counters()),
         .own_words = gemm_.blocks() + plan_.own_grid + 2},
        rooms);
    sender_epochs_ = run.epochs + gemm_.blocks();
    io_.done = sender_epochs_ + plan_.own_grid;
    if (how_ == pattern::copy_engine) {
      io_.next_use = io_.done + 1;
      constexpr std::uint64_t first = 1;
      gpu::upload(io_.next_use, &first, sizeof first, "cannot prepare the signals of copy engines");
    }
    list_chunks();
    describe_plan();
  }

  void launch_dry(cudaStream_t on) const {
    chunk_args dry = io_;
    dry.moved.run.launch = -1;
    gemm_.launch({}, &dry, on);
    move_gathered(dry, sender_epochs_, 2, on);
    bulk_gather dry_too = bulk_;
    dry_too.moved.run.launch = -1;
    gather_all(dry_too, sender_epochs_, false, on);
    gather_all_by_tma(dry, bulk_.receiving, sender_epochs_, 2, false, on);
  }

  void set_rows(std::int64_t rows) {
    problem_.m = rows;
    plan_.set_rows(problem_);
    gemm_.set_schedule(plan_.gemm.schedule);
    io_.how = protocol_ = all_gather_gemm_protocol(problem_, plan_.protocol);
    describe_plan();
  }

  [[nodiscard]] gemm_operands bind(const void* a, const void* weights, void* c) {
    io_.moved.run.in = static_cast<const std::byte*>(a);
    return {a, weights, c};
  }

  /// The maps of segments are in `io_`.
  void describe(const gemm_operands& operands) {
    const gpu::gemm_maps map{plan_.gemm, problem_.type};
    const gather_maps maps = maps_of(problem_, plan_, protocol_, operands, io_.moved.run.inbox);
    maps_.b = map.b(maps.b);
    maps_.c = map.c(maps.c);
    for (std::size_t i = 0; i < maps.a.size(); ++i) io_.a[i] = map.a(maps.a[i]);
    for (std::size_t i = 0; i < maps.b_or_c.size(); ++i)
      io_.b_or_c[i] = protocol_.by_rows() ? map.c(maps.b_or_c[i]) : map.b(maps.b_or_c[i]);
    maps_.a = io_.a[0];
    maps_.m_tail = maps_.n_tail = {};
    if (maps.own >= 0) map.describe_own_shard(maps_, maps.a[static_cast<std::size_t>(maps.own)]);
    if (!maps.inbox_tma_tiles.empty())
      io_.shard_tma_tiles = gpu::moved_map_of(maps.shard_tma_tiles, problem_.type);
    for (std::size_t peer = 0; peer < maps.inbox_tma_tiles.size(); ++peer)
      io_.inbox_tma_tiles[peer] = gpu::moved_map_of(maps.inbox_tma_tiles[peer], problem_.type);
  }

  void launch(void* /*c*/, gpu::whole_run& run, cudaStream_t on) {
    if (how_ == pattern::bulk_synchronous) run([&] { gather(on); });
    if (how_ == pattern::producer_consumer) {
      launcher_->side().fork(on);
      run([&] { move_gathered(io_, sender_epochs_, plan_.own_grid, launcher_->side().get()); });
    }
    if (how_ == pattern::copy_engine) run.all_of([&] { start_copies(on); });
    run([&] { gemm_.launch(maps_, &io_, on); });
    run([&] { join_sides(on); });
  }

 private:
  void list_chunks() {
    const comm::transfer_lists lists = lists_of(problem_, plan_);
    if (lists.begins.empty()) return;
    lists_ = {launcher_->own_table(lists.entries), launcher_->own_table(lists.begins)};
    nothing_ = {lists_.entries,
                launcher_->own_table(std::vector<std::int32_t>(lists.begins.size(), 0))};
  }

  void describe_plan() {
    describe_moved(io_.moved, plan_, protocol_);
    io_.who = plan_.who;
    io_.tma_tiles = plan_.tma_tiles;
    io_.senders = plan_.protocol.senders;
    io_.rate_limit = plan_.rate_limit;
    io_.comm_ctas = plan_.comm_ctas;
    io_.multiplying = gemm_.blocks() - plan_.comm_ctas;
    io_.all_arrived = how_ == pattern::bulk_synchronous;
    io_.segments = gather_segments::of(plan_, protocol_);
    io_.arrivals = arrival_grid::of(protocol_);
    io_.shard = sent_shard::of(protocol_);
    // An empty shard is not described for TMA, so nothing is listed.
    io_.lists = protocol_.shard(protocol_.rank()).empty() ? nothing_ : lists_;
    io_.polled = plan_.polls;
    if (plan_.packets) io_.panel = packet_panel::of(protocol_);
    bulk_ = {io_.moved, protocol_.sets(), plan_.protocol.senders,
             io_.shard, io_.lists,        receiving_grid::of(protocol_)};
  }

  void join_sides(cudaStream_t on) const {
    if (how_ == pattern::producer_consumer) launcher_->side().join(on);
    for (int i = 1; i <= 2 * plan_.streams; ++i) launcher_->side(i).join(on);
  }

  /// For bulk_synchronous: gathers all of A before the GEMM.
  void gather(cudaStream_t on) {
    const bool early = launcher_->starts_early();
    if (plan_.tma_tiles)
      return gather_all_by_tma(io_, bulk_.receiving, sender_epochs_, plan_.own_grid, early, on);
    bulk_.moved.run.in = io_.moved.run.in;
    gather_all(bulk_, sender_epochs_, early, on);
  }

  /// Epoch 1 in every run: there is one set of rooms, so all runs copy the same.
  void start_copies(cudaStream_t on) const {
    gpu::start_dma_senders(*launcher_, io_.moved, io_.next_use, plan_.streams, on,
                           [&](int sender, const auto& take) {
                             protocol_.push({sender, plan_.streams}, 1, take);
                           });
  }

  all_gather_gemm_problem problem_;
  pattern how_;
  gather_plan plan_;
  all_gather_gemm_protocol protocol_;
  gpu::gemm_launcher gemm_;
  chunk_args io_;  // for packets it is passed as packet_args
  comm::sender_lists lists_;
  comm::sender_lists nothing_;
  bulk_gather bulk_;  // for bulk_synchronous
  gpu::gemm_matrices maps_{};
  std::uint64_t* sender_epochs_ = nullptr;
  gpu::operator_launcher* launcher_ = nullptr;
};

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_on_device(world& w,
                                                           const all_gather_gemm_problem& problem,
                                                           const operator_options& options,
                                                           gpu::room_pool* rooms) {
  // A copy within a GPU may need a multiprocessor, and waiting kernels may occupy all of them.
  if (options.how == pattern::copy_engine) gpu::require_own_gpu(w, "copy engines");
  auto plans = gather_plans(problem, w.size(), w.rank(), options, gpu::num_sms_of(w));
  agree_on_lines(w, name, plans.front().agreed());
  return std::make_unique<launched_gemm<gather_launches>>(w, name, options.how, rooms, problem,
                                                          options, std::move(plans.front()));
}

}  // namespace untax
