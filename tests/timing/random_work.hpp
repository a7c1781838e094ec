#pragma once

#include <random>
#include <vector>

#include "engines/timing/machine.hpp"
#include "engines/timing/workload.hpp"

namespace timing_test {

namespace timing = untax::timing;

/// A machine of made-up numbers: fast enough that latencies and bytes both matter.
inline timing::machine sample_machine(timing::link_kind links = timing::link_kind::nvswitch) {
  timing::machine m;
  m.name = "sample";
  m.device = "sample";
  m.gpus = m.gpus_of_host = 8;
  m.links = links;
  m.numbers = {.processors = 132,
               .hertz = 1e9,
               .flops = 1e15,
               .memory_rate = 4e12,
               .launch_eager = 3e-6,
               .launch_graph = 1e-6,
               .start = 2e-6,
               .link_rate = 4e11,
               .read_rate = 3e11,
               .block_rate = 4e10,
               .store = 1e-6,
               .release = 5e-7,
               .look = 1e-7,
               .copy_start = 5e-6,
               .library_start = 5e-6,
               .library_hop = 1e-6,
               .library_run = 3e-5,
               .host_rate = 5e10,
               .host_store = 2e-6,
               .card_rate = 4e10,
               .card_store = 4e-6,
               .jitter = 0};
  return m;
}

struct random_shape {
  int ranks = 3;
  int workers = 3;  ///< of a rank
  int activities = 60;
};

/// Activities in a random order that could be carried out one by one, so that there is no cycle:
/// each waits only for what comes before it.
class random_work {
 public:
  random_work(random_shape shape, std::uint64_t seed) : work(shape.ranks), random_(seed) {
    std::vector<std::vector<planned>> of_worker(
        static_cast<std::size_t>(shape.ranks * shape.workers));
    std::vector<timing::signal> sent;
    for (int i = 0; i < shape.activities; ++i) {
      const int worker = below(shape.ranks * shape.workers);
      planned p;
      p.what.busy = 1e-7 * (1 + below(50));
      if (below(2) == 0) {
        p.what.from = worker / shape.workers;
        p.what.to = below(shape.ranks);
        p.what.bytes = 1000.0 * (1 + below(300));
        p.what.pace = below(2) == 0 ? 0 : 4e10;
        p.what.detached = below(3) == 0;
      }
      p.what.way = below(2) == 0 ? timing::signal_way::released : timing::signal_way::inside;
      if (!sent.empty() && below(2) == 0)
        p.wait = sent[static_cast<std::size_t>(below(static_cast<int>(sent.size())))];
      if (below(2) == 0) {
        p.raise = {p.what.to >= 0 ? p.what.to : below(shape.ranks), i, 1};
        sent.push_back(p.raise);
      }
      of_worker[static_cast<std::size_t>(worker)].push_back(p);
    }
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const int kernel = work.add_kernel(rank, 0, "random", 1e-6 * below(3));
      for (int worker = 0; worker < shape.workers; ++worker) {
        work.add_worker(kernel);
        for (const planned& p :
             of_worker[static_cast<std::size_t>(rank * shape.workers + worker)]) {
          if (p.wait.value > 0) work.wait(p.wait);
          if (p.raise.value > 0) work.raise(p.raise);
          work.act(p.what);
        }
      }
    }
  }

  timing::workload work;

 private:
  struct planned {
    timing::activity what;
    timing::signal wait;
    timing::signal raise;
  };
  int below(int most) { return static_cast<int>(random_() % static_cast<std::uint64_t>(most)); }

  std::mt19937_64 random_;
};

}  // namespace timing_test
