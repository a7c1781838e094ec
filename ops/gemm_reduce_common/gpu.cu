#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/comm/row_sums.hpp"
#include "engines/gpu/comm/sinks/row_partials.hpp"
#include "engines/gpu/comm/sum_kernels.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "ops/common/launched_gemm.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/gemm_reduce_common/device.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"

namespace untax {
namespace {

/// A GEMM whose sums are sent as words, for all patterns with own kernels but
/// fused_warp_specialized: see `launched_gemm`.
class sum_launches {
 public:
  sum_launches(const world& w, const device_sum& sum, const operator_options& options,
               sums_plan plan, const symmetric_result& result)
      : sum_(sum),
        plan_(std::move(plan)),
        result_(result),
        depth_(sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size) {
    // A rank without a part of k sends zeros.
    if (depth_ > 0)
      gemm_.emplace(plan_.gemm, sum.type,
                    gpu::variant_for<gpu::sums_kernels, gpu::summed_io>(plan_.gemm.config),
                    plan_.comm_ctas, start_of(w, options, false));
  }

  [[nodiscard]] int side_streams() const { return 1; }
  [[nodiscard]] const sums_plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t rows() const { return sum_.m; }

  void allocate(gpu::operator_host& host, gpu::room_pool* rooms) {
    launcher_ = &host.launcher();
    if (gemm_) gemm_->allocate_partials(gpu::partials_bytes(plan_.gemm.config, plan_.rows), rooms);
    const gpu::sum_fragments& how = plan_.how;
    io_.type = sum_.type;
    io_.slab_bytes = how.slab_bytes();
    io_.adding_warps = plan_.adding_warps(gemm_.has_value());
    io_.comm_ctas = plan_.comm_ctas;
    io_.mma_ctas_add = plan_.comm_ctas == 0 && !plan_.beside;
    io_.own_in_registers = io_.mma_ctas_add && how.halves && how.world() == 2;
    io_.sends_zeros = !gemm_;
    io_.multiplying = gemm_ ? gemm_->blocks() - plan_.comm_ctas : 0;
    io_.moved.c_stride = sum_.n;
    // An epoch for each block of both kernels, and the count of warps.
    const int blocks = gemm_ ? gemm_->blocks() : 0;
    gpu::run_arguments& run = io_.moved.run;
    run = host.allocate(
        {.threads = gpu::block_threads,
         .inbox = {{static_cast<std::size_t>(how.inbox_bytes()), gpu::room_content::words}},
         .counters = static_cast<std::size_t>(how.counters()),
         .own_words = blocks + plan_.own_grid + 1},
        rooms);
    run.between = result_.between;
    added_ = run.epochs + blocks;
    io_.done = added_ + plan_.own_grid;
    describe_rows();
  }

  void launch_dry(cudaStream_t on) const {
    gpu::summed_io dry = io_;
    dry.moved.run.launch = -1;
    if (gemm_) gemm_->launch({}, &dry, on);
    gpu::add_in_own_grid(dry, added_, plan_.own_grid, on);
  }

  /// Slabs are those of the most rows. Rows beyond those of a run have no owner.
  void set_rows(std::int64_t rows) {
    sum_.m = rows;
    plan_.set_rows(rows);
    if (gemm_) gemm_->set_schedule(plan_.gemm.schedule);
    describe_rows();
  }

  [[nodiscard]] gemm_operands bind(const void* a, const void* weights, void* c) {
    io_.moved.run.out = static_cast<std::byte*>(plan_.how.passes_on ? result_.data : c);
    return {a, weights, io_.moved.run.out};
  }

  /// Sums that TMA stores go into this rank's C, or into that of all ranks.
  void describe(const gemm_operands& operands) {
    if (!gemm_) return;
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
  }

  void launch(void* c, gpu::whole_run& run, cudaStream_t on) {
    add_up(run, on);
    launcher_->copy_result(c, io_.moved.run.out, sum_.result_bytes(), run, on);
  }

 private:
  void describe_rows() {
    const gpu::sum_fragments& how = plan_.how;
    io_.how = how;
    io_.rotation = how.rotation();
    // No GEMM follows the last tile of a block, so stores from registers end sooner there.
    io_.sends_by_tma = how.halves && !how.everywhere && !has_one_tile();
    io_.lands_by_tma = lands();
    io_.polls = polls();
  }

  void add_up(gpu::whole_run& run, cudaStream_t on) {
    if (!gemm_) return run([&] { gpu::add_in_own_grid(io_, added_, plan_.own_grid, on); });
    if (!plan_.beside) return run([&] { gemm_->launch(maps_, &io_, on); });
    const gpu::side_stream& side = launcher_->side();
    side.fork(on);
    run([&] { gpu::add_in_own_grid(io_, added_, plan_.own_grid, side.get()); });
    run([&] { gemm_->launch(maps_, &io_, on); });
    run([&] { side.join(on); });
  }

  /// Whether each block has one tile at most.
  [[nodiscard]] bool has_one_tile() const {
    const gpu::tile_schedule& order = plan_.gemm.schedule;
    return order.tiles() <= order.clusters;
  }
  /// The number of times that an MMA warp polls for peers' partials of a tile. With one tile it has
  /// nothing else to do. If every rank adds all of C, no partial has arrived when a tile ends.
  [[nodiscard]] int polls() const {
    if (!io_.mma_ctas_add) return 0;
    if (has_one_tile()) return io_.own_in_registers ? patience : 0;
    return plan_.how.everywhere ? 0 : 1;
  }

  /// Whether TMA loads the partials of peers for own rows, and stores the sums. If a block has only
  /// one narrow tile, all words of a peer reach registers sooner by ordinary loads.
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

  static constexpr int most_parts_in_registers = 16;
  static constexpr int patience = 64;  // polls, of most of a microsecond each

  device_sum sum_;
  sums_plan plan_;
  symmetric_result result_;
  std::int64_t depth_;
  std::optional<gpu::gemm_launcher> gemm_;
  gpu::summed_io io_;
  gpu::gemm_matrices maps_;
  std::uint64_t* added_ = nullptr;
  gpu::operator_launcher* launcher_ = nullptr;
};

/// A GEMM whose parts go to the owners of rows. The owners' blocks add them, or a kernel that
/// follows: see `launched_gemm`.
class row_sum_launches {
  using io = row_sums_io<gemm_reduce_protocol>;
  using sums_io = row_sums<gemm_reduce_protocol>;

 public:
  row_sum_launches(const world& w, const device_sum& sum, const operator_options& options,
                   row_sums_plan plan, const symmetric_result& result)
      : sum_(sum),
        plan_(std::move(plan)),
        result_(result),
        depth_(sharding{sum.k, w.size(), shard_granularity}.of(w.rank()).size),
        gemm_(plan_.gemm, sum.type, gpu::variant_for<gpu::scatter_kernels, io>(plan_.gemm.config),
              0, start_of(w, options, false)),
        io_{{{{.how = plan_.exchange(sum)}}}},
        adds_{{.how = io_.how}} {}

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
  const void* sums_ = nullptr;  // the matrices that the maps in `io_.sums` describe
  const std::uint64_t* zeros_ = nullptr;
  gpu::operator_launcher* launcher_ = nullptr;
};

/// The product, which is the sum of one rank.
class lonely_sum final : public device_operator {
 public:
  lonely_sum(world& w, const device_sum& sum, pattern how)
      : device_operator(w),
        name_(sum.operator_name),
        how_(how),
        gemm_({sum.m, sum.n, sum.k, sum.type}) {}

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

/// The first of `plans`, in which all ranks have to agree.
template <class Launches, class Plan>
std::unique_ptr<device_operator> launched_sum(world& w, const device_sum& sum,
                                              const operator_options& options,
                                              const symmetric_result& result, gpu::room_pool* rooms,
                                              std::vector<Plan> plans) {
  agree_on_lines(w, sum.operator_name, plans.front().agreed());
  return std::make_unique<launched_gemm<Launches>>(w, sum.operator_name, options.how, rooms, sum,
                                                   options, std::move(plans.front()), result);
}

}  // namespace

std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& sum,
                                                const operator_options& options,
                                                const symmetric_result& result,
                                                gpu::room_pool* rooms) {
  const gpu::gpu_model gpu{gpu::num_sms_of(w), gpu::gpu_here().costs};
  if (options.how == pattern::fused_warp_specialized)
    return launched_sum<row_sum_launches>(w, sum, options, result, rooms,
                                          row_sums_plans(sum, w.size(), w.rank(), options, gpu));
  return launched_sum<sum_launches>(w, sum, options, result, rooms,
                                    sums_plans(sum, w.size(), w.rank(), options, gpu));
}

std::unique_ptr<device_operator> lonely_sum_on_device(world& w, const device_sum& sum,
                                                      pattern how) {
  return std::make_unique<lonely_sum>(w, sum, how);
}

}  // namespace untax
