#include "ops/all_gather_gemm/device_schedule.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "ops/all_gather_gemm/validate.hpp"

namespace untax {
namespace {

using schedule::lane_program;

/// What one CTA does in a run: acquires chunks as they are needed, each once, and multiplies.
class cta_lane {
 public:
  cta_lane(const all_gather_gemm_problem& problem, const gather_plan& plan,
           const all_gather_gemm_protocol& how, int set, std::uint64_t use,
           const gather_reader& reader, const program::sink& emit)
      : problem_(problem),
        gemm_(plan.gemm),
        how_(how),
        rank_(how.rank()),
        set_(set),
        use_(use),
        reader_(reader),
        emit_(emit) {}

  /// `sums(cta)`: the flag of what that CTA leaves to others. `wait(flag)`, `raise(flag)` emit.
  template <class Sums, class Wait, class Raise>
  void run(int cta, const Sums& sums, const Wait& wait, const Raise& raise) {
    const gpu::tile_schedule& order = gemm_.schedule;
    const gpu::tile_config& c = gemm_.config;
    if (c.cluster_split_k > 1) {
      // The first CTA along k finishes; the others read for it.
      const int split = cta % cluster_blocks(c) / c.cluster;
      gpu::each_read(gemm_, cta, [&](const gpu::cta_read& of) { read(of, split == 0); });
      if (split > 0) return raise(sums(cta));
      for (int other = 1; other < c.cluster_split_k; ++other) {
        wait(sums(cta + other * c.cluster));
        gpu::each_read(gemm_, cta + other * c.cluster,
                       [&](const gpu::cta_read& of) { multiply_all(of); });
      }
      return;
    }
    gpu::each_read(gemm_, cta, [&](const gpu::cta_read& of) {
      read(of, of.finishes);
      if (!of.finishes) return raise(sums(cta));
      if (of.begin == 0) return;
      const int first = order.first_contributor(of.cluster, {of.tile, of.begin, of.end});
      for (int cluster = first; cluster < of.cluster; ++cluster)
        wait(sums(cta - (of.cluster - cluster) * cluster_blocks(c)));
      gpu::cta_read rest = of;
      rest.begin = 0;
      rest.end = of.begin;
      multiply_all(rest);
    });
  }

 private:
  void read(const gpu::cta_read& of, bool finishes) {
    reader_.each(of, set_, [&](const gather_read& r) {
      std::int64_t done = r.depth.begin;  // so far it is multiplied
      std::int64_t known = done;          // and so far it has been acquired
      for (const gather_read::ready& next : *r.waits) {
        bool waited = false;
        for (const int counter : next.counters) {
          if (!acquired_.insert(counter).second) continue;
          if (!waited) flush(r, done, known, finishes);
          waited = true;
          emit_(step{.acquire = {.producer = source_of(counter),
                                 .consumer = rank_,
                                 .number = counter,
                                 .ready = counter,
                                 .use = use_}});
        }
        known = next.depth_end;
      }
      flush(r, done, known, finishes);
    });
  }
  /// What others have read, and acquired.
  void multiply_all(const gpu::cta_read& of) {
    reader_.each(of, set_, [&](const gather_read& r) {
      std::int64_t done = r.depth.begin;
      flush(r, done, r.depth.end(), true);
    });
  }
  void flush(const gather_read& r, std::int64_t& done, std::int64_t to, bool finishes) {
    const std::int64_t depth = to - done;
    if (depth <= 0 || r.rows.empty() || r.columns.empty()) return;
    step s;
    s.rows = r.rows.size;
    s.from = r.from;
    s.from.col += done - r.depth.begin;
    if (finishes) {
      if (!(corner_ == std::pair(r.rows.begin, r.columns.begin))) made_ = 0;
      corner_ = {r.rows.begin, r.columns.begin};
      s.what = action::multiply;
      s.first = made_ == 0;
      made_ += depth;
      s.last = made_ == problem_.k;
      if (s.last) corner_ = {-1, -1};
      s.cols = r.columns.size;
      s.depth = depth;
      s.weights = {operand::b, rank_, r.columns.begin, done};
      s.to = {operand::c, rank_, r.rows.begin, r.columns.begin};
    } else {
      s.what = action::copy;
      s.cols = depth;
      s.to = {operand::panel, rank_, 0, done};
      emit_by_shard(r, s);
      done = to;
      return;
    }
    emit_(s);
    done = to;
  }

  /// What is taken into a panel at once is of one rank.
  void emit_by_shard(const gather_read& r, const step& all) const {
    if (!how_.by_rows()) return emit_(all);
    for (int source = 0; source < how_.world(); ++source) {
      const range shard = how_.shard(source);
      const std::int64_t begin = std::max(shard.begin, r.rows.begin);
      const std::int64_t end = std::min(shard.end(), r.rows.end());
      if (begin >= end) continue;
      step s = all;
      s.rows = end - begin;
      s.from.row += begin - r.rows.begin;
      s.to.row += begin - r.rows.begin;
      emit_(s);
    }
  }

  [[nodiscard]] int source_of(int counter) const { return reader_.source_of(counter, set_); }

  const all_gather_gemm_problem& problem_;
  const gpu::gemm_plan& gemm_;
  const all_gather_gemm_protocol& how_;
  int rank_;
  int set_;
  std::uint64_t use_;
  const gather_reader& reader_;
  const program::sink& emit_;
  std::set<int> acquired_;
  std::pair<std::int64_t, std::int64_t> corner_{-1, -1};  // of the tile at hand
  std::int64_t made_ = 0;                                 // how much of its k
};

/// The CTAs whose roles begin when a sender has sent: those that the sender is a warp of.
int cta_of_sender(const gather_plan& plan, const all_gather_gemm_protocol& how, int sender) {
  const moving_blocks beside{plan.who, how.by_rows(), plan.gemm.blocks(), plan.protocol.senders};
  for (int warp = 0; warp < 4; ++warp) {
    for (const int cta : {sender, sender / 4, sender % plan.gemm.blocks()}) {
      if (cta < plan.gemm.blocks() && sender_beside(beside, cta, warp) == sender) return cta;
    }
  }
  return -1;
}

}  // namespace

lane_program lanes_of(const all_gather_gemm_problem& problem, const gather_plan& plan,
                      const all_gather_gemm_protocol& how, const gather_lists& lists,
                      const gather_reader& reader) {
  const gpu::tile_config& c = plan.gemm.config;
  const std::int64_t x = tile_rows(c);
  lane_program all({how.rank(), how.world(), how.counters(), how.inbox(), how.outbox(),
                    c.swap_ab ? extent{c.block_n, x} : extent{x, c.block_n}});
  const int ctas = plan.gemm.blocks();
  const int senders = static_cast<int>(lists.senders.senders.size());
  const bool beside =
      plan.who != gather_senders::elsewhere && plan.who != gather_senders::comm_ctas;
  std::vector<std::vector<int>> before(static_cast<std::size_t>(ctas));  // flags, by CTA
  std::vector<int> sent;
  for (int i = 0; beside && i < senders; ++i) {
    sent.push_back(all.add_flag(false));
    const int cta = plan.packets ? i % ctas : cta_of_sender(plan, how, i);
    if (cta >= 0) before[static_cast<std::size_t>(cta)].push_back(sent.back());
  }
  std::vector<int> sums;
  std::vector<int> done;
  for (int i = 0; i < ctas; ++i) {
    sums.push_back(all.add_flag());
    done.push_back(all.add_flag());
  }
  const int rank = how.rank();
  const comm::transfer_lists* const sends = &lists.senders;
  // Copies within the GPU go before the kernel, by the stream of the run.
  if (plan.streams > 0) {
    all.begin_kernel("own copies", 0);
    for (std::size_t i = 0; i < sends->senders.size(); ++i) {
      all.add([=](std::uint64_t epoch, const program::sink& emit) {
        sends->steps(i, epoch, [&](const step& s) {
          if (s.to.rank == rank) emit(s);
        });
      });
    }
  }
  const int stage = plan.streams > 0 ? 1 : 0;
  all.begin_kernel("senders", stage);
  for (int i = 0; i < senders; ++i) {
    const bool others_only = plan.streams > 0;
    const int flag = beside ? sent[static_cast<std::size_t>(i)] : -1;
    all.add([=](std::uint64_t epoch, const program::sink& emit) {
      sends->steps(static_cast<std::size_t>(i), epoch, [&](const step& s) {
        if (!others_only || s.what == action::none || s.to.rank != rank) emit(s);
      });
      if (flag >= 0) emit(lane_program::raises(rank, flag, epoch));
    });
  }
  all.begin_kernel("gemm", plan.protocol.senders_acquire ? stage + 1 : stage);
  const room_sets sets = how.sets();
  for (int cta = 0; cta < ctas; ++cta) {
    const std::vector<int> first = before[static_cast<std::size_t>(cta)];
    const int end = done[static_cast<std::size_t>(cta)];
    all.add([=, &problem, &plan, &how, &reader](std::uint64_t epoch, const program::sink& emit) {
      for (const int flag : first) emit(lane_program::awaits(rank, flag, epoch));
      cta_lane lane(problem, plan, how, sets.set_of(epoch), sets.use_of(epoch), reader, emit);
      lane.run(
          cta, [&](int of) { return sums[static_cast<std::size_t>(of)]; },
          [&](int flag) { emit(lane_program::awaits(rank, flag, epoch)); },
          [&](int flag) { emit(lane_program::raises(rank, flag, epoch)); });
      emit(lane_program::raises(rank, end, epoch));
    });
  }
  const comm::transfer_lists* const last = &lists.last;
  if (last->entries() == 0) return all;
  all.add([=](std::uint64_t epoch, const program::sink& emit) {
    for (const int flag : done) emit(lane_program::awaits(rank, flag, epoch));
    last->steps(0, epoch, emit);
  });
  return all;
}

namespace {

/// Of packets, chunks for each turn of a warp.
gather_plan modelled(const gather_plan& plan) {
  constexpr int columns_of_warp = 32 * packet_panel::elements;
  return plan.packets ? in_packets(plan, columns_of_warp, packet_threads_of(plan) / 32) : plan;
}

schedule::operand_extents operands_of(const gather_model& m) {
  const range part = m.how.shard(m.how.rank());
  const extent a =
      m.how.by_rows() ? extent{part.size, m.problem.k} : extent{m.problem.m, part.size};
  return {a, {m.problem.n, m.problem.k}, {m.problem.m, m.problem.n}};
}

}  // namespace

gather_model::gather_model(const all_gather_gemm_problem& asked, const gather_plan& planned)
    : problem(asked),
      plan(modelled(planned)),
      how(problem, plan.protocol),
      lists(lower_gather(plan, how)),
      numbers(gather_numbers::of(problem, plan, how)) {}

void prove(const std::vector<gather_model>& ranks, device_findings& found) {
  std::deque<gather_reader> readers;
  device_schedule lanes;
  std::vector<schedule::operand_extents> operands;
  for (const gather_model& m : ranks) {
    const gather_reader& reader = readers.emplace_back(m.problem, m.plan, m.how, m.numbers);
    lanes.push_back(lanes_of(m.problem, m.plan, m.how, m.lists, reader));
    operands.push_back(operands_of(m));
  }
  const int sets = ranks.front().how.sets().sets;
  add_report(found, lanes, check_lanes(lanes, operands, 2 * static_cast<std::uint64_t>(sets)));
}

device_findings check_on_gpus(const all_gather_gemm_problem& problem, int ranks,
                              const operator_options& options, int multiprocessors) {
  device_findings found;
  std::vector<gather_model> models;
  std::vector<std::string> agreed;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      const gather_plan plan = gather_plans(problem, ranks, rank, options, multiprocessors).front();
      if (rank == 0) found.plan = plan.text();
      if (rank == 0) agreed = plan.agreed();
      if (rank > 0 && plan.agreed() != agreed)
        found.faults.push_back("rank " + std::to_string(rank) + " plans otherwise than rank 0");
      for (const std::string& fault : faults_of(problem, plan))
        found.faults.push_back("rank " + std::to_string(rank) + ": " + fault);
      models.emplace_back(problem, plan);
      found.transfers += models.back().lists.senders.entries();
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
