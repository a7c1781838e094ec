#include <algorithm>
#include <set>
#include <string>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/gemm_all_scatter/lowered.hpp"

// The kernels of a planned scatter, lane by lane.

namespace untax {
namespace {

using schedule::lane_program;

/// What a CTA does in the kernel of a row split.
class cta_lane {
 public:
  cta_lane(const scatter_model& m, int split, int cta, std::uint64_t epoch,
           const program::sink& emit)
      : m_(m),
        own_(sharding{m.problem.n, m.how.world(), shard_granularity}.of(m.how.rank())),
        rows_(rows_of_row_split(m.problem, m.plan, split)),
        cta_(cta),
        epoch_(epoch),
        emit_(emit) {}

  template <class Sums, class Wait, class Raise>
  void run(const Sums& sums, const Wait& wait, const Raise& raise) const {
    const gpu::gemm_plan& gemm = m_.plan.gemm;
    gpu::each_read(gemm, cta_, [&](const gpu::cta_read& of) {
      const std::int64_t rows = std::clamp<std::int64_t>(rows_.size - of.a.begin, 0, of.a.count);
      const std::int64_t columns = std::clamp<std::int64_t>(own_.size - of.b.begin, 0, of.b.count);
      const int row = of.a.begin + static_cast<int>(rows_.begin);
      if (!of.finishes) {
        if (rows > 0) read(of, row, rows);
        return raise(sums(cta_));
      }
      if (of.begin > 0) {
        const int first = gemm.schedule.first_contributor(of.cluster, {of.tile, of.begin, of.end});
        for (int cluster = first; cluster < of.cluster; ++cluster)
          wait(sums(cta_ - (of.cluster - cluster) * cluster_blocks(gemm.config)));
      }
      if (rows > 0 && columns > 0) store(row, of.b.begin, rows, columns);
    });
  }

 private:
  /// k-blocks whose sums are left to another CTA.
  void read(const gpu::cta_read& of, int row, std::int64_t rows) const {
    const std::int64_t begin = std::int64_t{of.begin} * gpu::block_k;
    const std::int64_t end =
        std::min<std::int64_t>(std::int64_t{of.end} * gpu::block_k, m_.problem.k);
    if (end <= begin) return;
    emit_(step{.what = action::copy,
               .rows = rows,
               .cols = end - begin,
               .from = {operand::a, m_.how.rank(), row, begin},
               .to = {operand::panel, m_.how.rank(), 0, begin}});
  }
  void store(int row, int column, std::int64_t rows, std::int64_t columns) const {
    const int rank = m_.how.rank();
    const bool tile_flags = m_.plan.way == scatter_way::tile_flags;
    const place to{operand::c, rank, row, own_.begin + column};
    emit_(step{
        .what = action::multiply,
        .first = true,
        .last = true,
        .rows = rows,
        .cols = columns,
        .depth = m_.problem.k,
        .from = {operand::a, rank, row, 0},
        .weights = {operand::b, rank, column, 0},
        .to = to,
        .publish = tile_flags ? m_.how.tile_flag(m_.how.tile_at(row, column), epoch_) : room{}});
    if (m_.plan.way != scatter_way::store_to_peers) return;
    for (int hop = 1; hop < m_.how.world(); ++hop) {
      place there = to;
      there.rank = receiver_at_hop(rank, hop, m_.how.world());
      emit_(step{.what = action::copy,
                 .rows = rows,
                 .cols = columns,
                 .from = to,
                 .to = there,
                 .reserve = m_.how.landing(rank, there.rank, 0, epoch_)});
    }
  }

  const scatter_model& m_;
  range own_;
  range rows_;
  int cta_;
  std::uint64_t epoch_;
  const program::sink& emit_;
};

/// Adds the lanes of one rank; flags are those of the stream's order where kernels follow kernels.
class lane_maker {
 public:
  explicit lane_maker(const scatter_model& m)
      : m_(m),
        rank_(m.how.rank()),
        all_({rank_, m.how.world(), m.how.counters(), {}, {}, tile_of(m)}),
        has_columns_(m.how.tiles().count() > 0) {}

  lane_program make() {
    switch (m_.plan.way) {
      case scatter_way::store_to_peers:
        multiply("gemm", 0, 0, {});
        add_list(m_.lists.open, 0, {});
        add_list(m_.lists.close, 0, has_columns_ ? done_ : std::vector<int>());
        break;
      case scatter_way::tile_flags:
        multiply("gemm", 0, 0, {});
        all_.begin_kernel("senders", 0);
        add_senders();
        break;
      case scatter_way::local_only:
        if (m_.plan.streams > 0) {
          copy_engines();
        } else {
          multiply("gemm", 0, 0, {});
          all_.begin_kernel("senders", 1);
          add_senders();
        }
        break;
    }
    return std::move(all_);
  }

 private:
  [[nodiscard]] static extent tile_of(const scatter_model& m) {
    const gpu::tile_config& c = m.plan.gemm.config;
    const std::int64_t x = tile_rows(c);
    return c.swap_ab ? extent{c.block_n, x} : extent{x, c.block_n};
  }

  /// The CTAs of one kernel, which begin when those of `before` have ended.
  void multiply(const char* name, int stage, int split, const std::vector<int>& before) {
    all_.begin_kernel(name, stage);
    done_.clear();
    if (!has_columns_) return;
    const int ctas = m_.plan.gemm.blocks();
    std::vector<int> sums;
    for (int i = 0; i < ctas; ++i) {
      sums.push_back(all_.add_flag());
      done_.push_back(all_.add_flag());
    }
    const scatter_model* const m = &m_;
    const int rank = rank_;
    for (int cta = 0; cta < ctas; ++cta) {
      const int end = done_[static_cast<std::size_t>(cta)];
      all_.add([=](std::uint64_t epoch, const program::sink& emit) {
        for (const int flag : before) emit(lane_program::awaits(rank, flag, epoch));
        cta_lane(*m, split, cta, epoch, emit)
            .run([&](int of) { return sums[static_cast<std::size_t>(of)]; },
                 [&](int flag) { emit(lane_program::awaits(rank, flag, epoch)); },
                 [&](int flag) { emit(lane_program::raises(rank, flag, epoch)); });
        emit(lane_program::raises(rank, end, epoch));
      });
    }
  }
  /// A lane that walks the first list behind `before`; raises `flag` at its end, if there is one.
  void add_list(const comm::transfer_lists& lists, std::size_t number,
                const std::vector<int>& before, int flag = -1) {
    const comm::transfer_lists* const list = &lists;
    const int rank = rank_;
    all_.add([=](std::uint64_t epoch, const program::sink& emit) {
      for (const int of : before) emit(lane_program::awaits(rank, of, epoch));
      list->steps(number, epoch, emit);
      if (flag >= 0) emit(lane_program::raises(rank, flag, epoch));
    });
  }
  void add_senders() {
    for (std::size_t i = 0; i < m_.lists.senders.senders.size(); ++i)
      add_list(m_.lists.senders, i, {});
  }
  /// Row splits one after the other; what one has stored is copied while the next ones multiply,
  /// when all ranks have opened their C.
  void copy_engines() {
    all_.begin_kernel("open", 0);
    const int opened = all_.add_flag();
    add_list(m_.lists.open, 0, {}, opened);
    std::vector<std::vector<int>> ended;
    for (int split = 0; split < m_.plan.row_splits; ++split) {
      multiply("gemm", 0, split, std::vector<int>(done_));
      ended.push_back(done_);
    }
    all_.begin_kernel("copies", 0);
    std::vector<int> copied{opened};
    const scatter_model* const m = &m_;
    const int rank = rank_;
    for (std::size_t i = 0; i < m_.lists.senders.senders.size(); ++i) {
      const int flag = all_.add_flag();
      copied.push_back(flag);
      all_.add([=](std::uint64_t epoch, const program::sink& emit) {
        emit(lane_program::awaits(rank, opened, epoch));
        std::set<std::int64_t> known;
        m->lists.senders.steps(i, epoch, [&](const step& s) {
          const std::int64_t split = s.from.row / m->plan.split_rows;
          if (known.insert(split).second && split < static_cast<std::int64_t>(ended.size()))
            for (const int of : ended[static_cast<std::size_t>(split)])
              emit(lane_program::awaits(rank, of, epoch));
          emit(s);
        });
        emit(lane_program::raises(rank, flag, epoch));
      });
    }
    copied.insert(copied.end(), done_.begin(), done_.end());
    all_.begin_kernel("close", 0);
    add_list(m_.lists.close, 0, copied);
  }

  const scatter_model& m_;
  int rank_;
  lane_program all_;
  bool has_columns_;
  std::vector<int> done_;  // of the last kernel that multiplies
};

}  // namespace

void prove(const std::vector<scatter_model>& ranks, device_findings& found) {
  constexpr std::uint64_t epochs = 2;
  device_schedule lanes;
  std::vector<schedule::operand_extents> operands;
  for (const scatter_model& m : ranks) {
    lanes.push_back(lane_maker(m).make());
    const range own = sharding{m.problem.n, m.how.world(), shard_granularity}.of(m.how.rank());
    operands.push_back(
        {{m.problem.m, m.problem.k}, {own.size, m.problem.k}, {m.problem.m, m.problem.n}});
  }
  add_report(found, lanes, check_lanes(lanes, operands, epochs));
}

device_findings check_on_gpus(const gemm_all_scatter_problem& problem, int ranks,
                              const operator_options& options, int multiprocessors) {
  device_findings found;
  std::vector<scatter_model> models;
  std::vector<std::string> agreed;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      const scatter_plan plan =
          scatter_plans(problem, ranks, rank, options, multiprocessors).front();
      if (rank == 0) found.plan = plan.text();
      if (rank == 0) agreed = plan.agreed();
      if (rank > 0 && plan.agreed() != agreed)
        found.faults.push_back("rank " + std::to_string(rank) + " plans otherwise than rank 0");
      for (const std::string& fault : faults_of(problem, plan))
        found.faults.push_back("rank " + std::to_string(rank) + ": " + fault);
      const scatter_model& made = models.emplace_back(problem, plan);
      found.transfers +=
          made.lists.senders.entries() + made.lists.open.entries() + made.lists.close.entries();
    }
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    found.refusal = e.what();
    return found;
  }
  if (found.faults.empty()) prove(models, found);
  return found;
}

}  // namespace untax
