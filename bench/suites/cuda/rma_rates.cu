#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/rma_check.cuh"
#include "bench/suites/cuda/rma_kernels.cuh"
#include "bench/suites/cuda/rma_parts.hpp"
#include "src/symmetric/cuda/launching.hpp"
#include "src/taxes/cuda/gpu_team.cuh"

namespace untax::bench {
namespace {

constexpr std::int64_t mega = 1 << 20;
constexpr std::int64_t source_bytes = 1536 * mega;
constexpr std::int64_t target_bytes = 2048 * mega;
// The rates of plain programs on such a machine: of stores to a peer, of loads from one, and of
// loads of which a third of the links carries 37.5 %.
constexpr double push_rate = 366e9;
constexpr double pull_rate = 370e9;
constexpr double uneven_rate = pull_rate / 3 / 0.375;
constexpr double all_rate = 330e9;

/// One way to move bytes, by kernels of rank `at`.
struct variant {
  std::string what;
  copy_by how = copy_by::block_stores;
  int at = 0;
  int peer = 1;
  bool pulls = false;
  int blocks = 132;
  std::int64_t bytes = 256 * mega;

  [[nodiscard]] int source() const { return pulls ? peer : at; }
  [[nodiscard]] int target() const { return pulls ? at : peer; }
};

const char* name_of(copy_by how) {
  constexpr std::array names = {"stores by block", "stores by grid", "bulk",
                                "stores by block", "stores by grid", "bulk",
                                "stores by grid"};
  return names[static_cast<std::size_t>(how)];
}

class rate_bench {
 public:
  explicit rate_bench(gpu_team& team)
      : team_(team),
        sources_(team.allocate<half_word>(source_bytes / 2, "sources")),
        targets_(team.allocate<half_word>(target_bytes / 2, "targets")),
        wrong_(team.allocate<unsigned long long>(1, "wrong words")) {
    for (int rank = 0; rank < team.size(); ++rank) {
      team.use(rank);
      fill_pattern<<<132, 1024, 0, team.stream_of(rank)>>>(
          reinterpret_cast<std::uint32_t*>(sources_[index(rank)].local()), source_bytes / 4, rank);
      prepare<copy_by::block_stores>();
      prepare<copy_by::grid_stores>();
      prepare<copy_by::bulk>();
      prepare<copy_by::block_tile>();
      prepare<copy_by::grid_tile>();
      prepare<copy_by::bulk_tile>();
      prepare<copy_by::uneven_tile>();
    }
    team.finish();
  }

  /// The seconds for v.bytes, with kernels of all `ranks` at once. With several ranks, the peer of
  /// each is the next one.
  double run(const variant& v, const std::vector<int>& ranks) {
    const std::int64_t span =
        is_tile(v.how) ? source_bytes / from_stride(v.how) * tile_cols : source_bytes;
    // A launch takes microseconds, so short transfers are repeated in one launch.
    const int turns = static_cast<int>(std::clamp<std::int64_t>(64 * mega / v.bytes, 1, 64));
    const double seconds = team_.timed(ranks, [&](int rank, cudaStream_t stream) {
      launch(v, {target_of(v, rank), source_of(v, rank), v.bytes, span, turns}, stream);
    });
    return seconds / turns;
  }

  /// Throws if a byte of the variant's result is wrong.
  void check(const variant& v) {
    const std::int64_t span = is_tile(v.how) ? matrix_bytes(v.bytes) : v.bytes + mega;
    team_.use(v.target());
    gpu::require(cudaMemset(targets_[index(v.target())].local(), 0xff,
                            static_cast<std::size_t>(std::min(span, target_bytes))),
                 "poisoning a target");
    gpu::require(cudaDeviceSynchronize(), "poisoning a target");
    team_.run({v.at}, [&](int rank, cudaStream_t stream) {
      launch(v, {target_of(v, rank), source_of(v, rank), v.bytes, v.bytes, 1}, stream);
    });
    unsigned long long* wrong = wrong_[index(v.target())].local();
    team_.run({v.target()}, [&](int rank, cudaStream_t stream) {
      count_wrong<<<132, 1024, 0, stream>>>(
          reinterpret_cast<const std::uint32_t*>(targets_[index(rank)].local()), v.bytes,
          std::min(span, target_bytes), v.source(), is_tile(v.how) ? from_stride(v.how) : 0, wrong);
    });
    unsigned long long found = 0;
    gpu::require(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost),
                 "reading a count");
    if (found == 0) return;
    throw error(errc::internal,
                "bench rma: " + v.what + " (" + name_of(v.how) + ") of " + std::to_string(v.bytes) +
                    " bytes by " + std::to_string(v.blocks) + " blocks of rank " +
                    std::to_string(v.at) + ": " + std::to_string(found) + " words are wrong");
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  template <copy_by how>
  static void prepare() {
    gpu::load_kernel(reinterpret_cast<const void*>(move_kernel<how>), "loading a kernel");
    if (is_bulk(how))
      gpu::require(
          cudaFuncSetAttribute(move_kernel<how>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               sizeof(ring::memory)),
          "asking for shared memory");
  }

  // With several ranks, the peer of each is the next one.
  [[nodiscard]] int peer_of(const variant& v, int rank) const {
    return rank == v.at ? v.peer : (rank + 1) % team_.size();
  }
  [[nodiscard]] half_word* target_of(const variant& v, int rank) const {
    const auto& own = targets_[index(rank)];
    return v.pulls ? own.local() : own.at(peer_of(v, rank));
  }
  [[nodiscard]] const half_word* source_of(const variant& v, int rank) const {
    const auto& own = sources_[index(rank)];
    return v.pulls ? own.at(peer_of(v, rank)) : own.local();
  }

  template <copy_by how>
  static void launch_as(const variant& v, const move_request& work, cudaStream_t stream) {
    move_kernel<how>
        <<<v.blocks, threads_of(how), is_bulk(how) ? sizeof(ring::memory) : 0, stream>>>(work);
  }
  static void launch(const variant& v, const move_request& work, cudaStream_t stream) {
    switch (v.how) {
      case copy_by::block_stores:
        return launch_as<copy_by::block_stores>(v, work, stream);
      case copy_by::grid_stores:
        return launch_as<copy_by::grid_stores>(v, work, stream);
      case copy_by::bulk:
        return launch_as<copy_by::bulk>(v, work, stream);
      case copy_by::block_tile:
        return launch_as<copy_by::block_tile>(v, work, stream);
      case copy_by::grid_tile:
        return launch_as<copy_by::grid_tile>(v, work, stream);
      case copy_by::bulk_tile:
        return launch_as<copy_by::bulk_tile>(v, work, stream);
      case copy_by::uneven_tile:
        return launch_as<copy_by::uneven_tile>(v, work, stream);
    }
  }

  gpu_team& team_;
  std::vector<symmetric<half_word>> sources_;
  std::vector<symmetric<half_word>> targets_;
  std::vector<symmetric<unsigned long long>> wrong_;
};

/// Variants that are measured in turn, one table row each.
struct rate_group {
  rma_table table = rma_table::blocks;
  std::vector<int> ranks = {0};
  std::vector<variant> variants;
};

constexpr std::array copies = {copy_by::block_stores, copy_by::grid_stores, copy_by::bulk};
constexpr std::array tile_copies = {copy_by::block_tile, copy_by::grid_tile, copy_by::bulk_tile};

std::vector<rate_group> groups_by_blocks() {
  std::vector<rate_group> groups;
  for (const int blocks : {1, 4, 8, 16, 32, 132}) {
    rate_group g;
    for (const bool pulls : {false, true}) {
      for (const copy_by how : copies)
        g.variants.push_back({pulls ? "get" : "put", how, 0, 1, pulls, blocks});
      for (const copy_by how : tile_copies)
        g.variants.push_back({pulls ? "tile get" : "tile put", how, 0, 1, pulls, blocks});
    }
    g.variants.push_back({"tile get, rows 12 KB apart", copy_by::uneven_tile, 0, 1, true, blocks});
    groups.push_back(std::move(g));
  }
  return groups;
}

std::vector<rate_group> groups_by_size() {
  std::vector<rate_group> groups;
  for (std::int64_t bytes = mega / 16; bytes <= 1024 * mega; bytes *= 4) {
    rate_group g{rma_table::sizes, {0}, {}};
    for (const bool pulls : {false, true}) {
      for (const copy_by how : copies)
        g.variants.push_back({pulls ? "get" : "put", how, 0, 1, pulls, 132, bytes});
    }
    groups.push_back(std::move(g));
  }
  return groups;
}

std::vector<rate_group> groups_of_pairs(int ranks) {
  std::vector<rate_group> groups;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      rate_group g{rma_table::pairs, {from}, {}};
      for (const bool pulls : {false, true}) {
        for (const copy_by how : {copy_by::bulk, copy_by::grid_stores})
          g.variants.push_back({pulls ? "get" : "put", how, from, to, pulls, 132, 64 * mega});
      }
      groups.push_back(std::move(g));
    }
  }
  return groups;
}

rate_group group_of_all(int ranks) {
  rate_group g{rma_table::all, {}, {}};
  for (int rank = 0; rank < ranks; ++rank) g.ranks.push_back(rank);
  for (const bool pulls : {false, true}) {
    for (const copy_by how : copies) {
      for (const int blocks : {16, 32, 132})
        g.variants.push_back({pulls ? "get" : "put", how, 0, 1, pulls, blocks});
    }
  }
  return g;
}

double bound_of(const variant& v) {
  if (v.how == copy_by::uneven_tile) return uneven_rate;
  return v.pulls ? pull_rate : push_rate;
}

double bar_of(const rate_group& g, const variant& v) {
  const double rate = bound_of(v);
  if (g.table == rma_table::all) return v.pulls ? 0 : all_rate;
  if (v.bytes < 64 * mega) return 0;
  if (v.blocks >= 132) return 0.97 * rate;
  if (v.blocks == 16) return 0.93 * rate;
  return v.blocks == 8 ? 0.85 * rate : 0;
}

void measure(rate_bench& bench, const rate_group& g, const rma_suite_options& options,
             std::vector<rma_figure>& figures) {
  std::vector<std::vector<double>> seconds(g.variants.size());
  // The first turn is a warm-up.
  for (int repeat = 0; repeat <= options.repeats; ++repeat) {
    for (std::size_t i = 0; i < g.variants.size(); ++i) {
      const double took = bench.run(g.variants[i], g.ranks);
      if (repeat > 0) seconds[i].push_back(took);
    }
    if (options.progress && repeat > 0) options.progress();
  }
  for (std::size_t i = 0; i < g.variants.size(); ++i) {
    const variant& v = g.variants[i];
    bench.check(v);
    figures.push_back({g.table, v.what, name_of(v.how), v.at, g.ranks.size() > 1 ? -1 : v.peer,
                       v.blocks, v.bytes, spread_of(seconds[i]), bound_of(v), bar_of(g, v)});
  }
}

}  // namespace

std::vector<rma_figure> measure_rates(gpu_team& team, const rma_suite_options& options) {
  rate_bench bench(team);
  std::vector<rma_figure> figures;
  for (const rate_group& g : groups_by_blocks()) measure(bench, g, options, figures);
  for (const rate_group& g : groups_by_size()) measure(bench, g, options, figures);
  for (const rate_group& g : groups_of_pairs(team.size())) measure(bench, g, options, figures);
  measure(bench, group_of_all(team.size()), options, figures);
  return figures;
}

int rate_steps(int ranks, int repeats) {
  return repeats * static_cast<int>(groups_by_blocks().size() + groups_by_size().size() +
                                    groups_of_pairs(ranks).size() + 1);
}

}  // namespace untax::bench
