#include <algorithm>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/rma_parts.hpp"
#include "src/symmetric/cuda/launching.hpp"
#include "src/taxes/cuda/gpu_team.cuh"

namespace untax::bench {
namespace {

constexpr int rounds = 1000;
constexpr std::size_t line = 16;  // words of 128 bytes

/// The ways to send a ping to the peer.
enum class ping {
  maximum,    ///< signal, which raises by a maximum
  store,      ///< a release store, for comparison
  put,        ///< put_with_signal of 16 bytes
  small_put,  ///< as put, with the counter in the packets
  packet_8,   ///< 8 bytes with the flag in the data
  packet_16,  ///< 16 bytes with the flag in the data
};

struct ping_request {
  device_world world;
  symmetric<std::uint64_t> words;  ///< a counter, an inbox and an outbox, each in its line
  symmetric<packet> packets;
  int peer = 0;
  std::uint64_t base = 0;  ///< epochs up to this one are used
  std::uint64_t* took_ns = nullptr;
};

template <ping how, class G>
__device__ void send(G& group, const ping_request& work, std::uint64_t epoch) {
  std::uint64_t* counter = work.words.at(work.peer);
  std::uint64_t* outbox = work.words.local(2 * line);
  if constexpr (how == ping::maximum) {
    signal(group, counter, epoch);
  } else if constexpr (how == ping::store) {
    group.sync();
    if (group.thread_rank() == 0) store(device_thread{}, counter, epoch, memory_order::release);
  } else if constexpr (how == ping::put) {
    put_with_signal(group, work.words.at(work.peer, line), outbox, 2, counter, epoch);
  } else if constexpr (how == ping::small_put) {
    small_put_with_signal(group, work.packets.at(work.peer), outbox, 2, epoch);
  } else {
    send_packets(group, work.packets.at(work.peer), outbox, how == ping::packet_8 ? 1 : 2, epoch);
  }
}

template <ping how, class G>
[[nodiscard]] __device__ bool receive(G& group, const ping_request& work, std::uint64_t epoch) {
  const awaited who{.name = "ping-pong", .peer = work.peer};
  if constexpr (how == ping::packet_8 || how == ping::packet_16) {
    return receive_packets(group, work.words.local(line), work.packets.local(),
                           how == ping::packet_8 ? 1 : 2, epoch, who) == wait_outcome::ok;
  } else if constexpr (how == ping::small_put) {
    return receive_small_put(group, work.words.local(line), work.packets.local(), 2, epoch, who);
  } else {
    return wait_until(group, work.words.local(), epoch, who);
  }
}

/// One warp of each of two ranks; rank 0 begins. The first half of the rounds is a warm-up.
template <ping how>
__global__ void ping_pong(ping_request work) {
  auto group = work.world.warp(0);
  const bool begins = group.rank() < work.peer;
  std::uint64_t begin = 0;
  for (int round = 0; round < 2 * rounds; ++round) {
    const std::uint64_t epoch = work.base + static_cast<std::uint64_t>(round) + 1;
    if (round == rounds) begin = cuda_memory::now();
    if (begins) send<how>(group, work, epoch);
    if (!receive<how>(group, work, epoch)) return;
    if (!begins) send<how>(group, work, epoch);
  }
  if (begins && group.thread_rank() == 0) *work.took_ns = cuda_memory::now() - begin;
}

/// Barriers of all ranks, one after the other. The first half of them is a warm-up.
__global__ void barrier_rounds(device_world world, device_barrier barrier, std::uint64_t* took_ns) {
  auto block = world.block();
  std::uint64_t begin = 0;
  for (int round = 0; round < 2 * rounds; ++round) {
    if (round == rounds) begin = cuda_memory::now();
    if (!barrier.arrive_and_wait(block, "barrier of a bench")) return;
  }
  if (block.thread_rank() == 0) *took_ns = cuda_memory::now() - begin;
}

template <class Kernel>
void preload(const gpu_team& team, Kernel* kernel) {
  for (int rank = 0; rank < team.size(); ++rank) {
    team.use(rank);
    gpu::load_kernel(reinterpret_cast<const void*>(kernel), "loading a kernel");
  }
}

class latency_bench {
 public:
  explicit latency_bench(gpu_team& team)
      : team_(team),
        words_(team.allocate<std::uint64_t>(3 * line, "pings")),
        packets_(team.allocate<packet>(2, "packets")),
        barriers_(team.allocate<std::uint64_t>(device_barrier::words(team.size()), "barrier")) {
    gpu::require(cudaHostAlloc(&took_ns_, sizeof *took_ns_, cudaHostAllocPortable), "host memory");
    preload(team, ping_pong<ping::maximum>);
    preload(team, ping_pong<ping::store>);
    preload(team, ping_pong<ping::put>);
    preload(team, ping_pong<ping::small_put>);
    preload(team, ping_pong<ping::packet_8>);
    preload(team, ping_pong<ping::packet_16>);
    preload(team, barrier_rounds);
  }
  latency_bench(const latency_bench&) = delete;
  latency_bench& operator=(const latency_bench&) = delete;
  ~latency_bench() { cudaFreeHost(took_ns_); }

  /// Seconds in one direction between ranks 0 and `peer`.
  template <ping how>
  double one_way(int peer) {
    // The epochs of a counter and of packets only rise, also from one variant to the next.
    const std::uint64_t base = used_;
    used_ += 2 * rounds;
    const std::vector<std::uint64_t> marks = mark(0, peer, base);
    team_.run({0, peer}, [&](int rank, cudaStream_t stream) {
      const auto r = static_cast<std::size_t>(rank);
      ping_pong<how><<<1, 32, 0, stream>>>(
          {team_.world_of(rank), words_[r], packets_[r], rank == 0 ? peer : 0, base, took_ns_});
    });
    if constexpr (how != ping::maximum && how != ping::store)
      compare(0, peer, marks, how == ping::packet_8 ? 1 : 2);
    return 1e-9 * static_cast<double>(*took_ns_) / (2 * rounds);
  }

  /// Seconds of a barrier of all ranks.
  double barrier() {
    std::vector<int> all;
    for (int rank = 0; rank < team_.size(); ++rank) all.push_back(rank);
    team_.run(all, [&](int rank, cudaStream_t stream) {
      barrier_rounds<<<1, 32, 0, stream>>>(
          team_.world_of(rank), device_barrier(barriers_[static_cast<std::size_t>(rank)]),
          took_ns_);
    });
    return 1e-9 * static_cast<double>(*took_ns_) / rounds;
  }

 private:
  static constexpr std::size_t payload = 2 * sizeof(std::uint64_t);

  /// Writes unique words into the outboxes of two ranks, and poison into the inboxes.
  std::vector<std::uint64_t> mark(int a, int b, std::uint64_t base) {
    std::vector<std::uint64_t> marks;
    for (const int rank : {a, b}) {
      const std::uint64_t seed = (base + 7) * 0x9e3779b97f4a7c15ULL + static_cast<unsigned>(rank);
      const std::uint64_t words[2] = {seed, ~seed * 3};
      marks.insert(marks.end(), words, words + 2);
      const symmetric<std::uint64_t>& own = words_[static_cast<std::size_t>(rank)];
      team_.use(rank);
      gpu::require(cudaMemcpy(own.local(2 * line), words, payload, cudaMemcpyHostToDevice),
                   "a mark");
      gpu::require(cudaMemset(own.local(line), 0xff, payload), "poisoning an inbox");
      gpu::require(cudaDeviceSynchronize(), "poisoning an inbox");
    }
    return marks;
  }

  void compare(int a, int b, const std::vector<std::uint64_t>& marks, int count) {
    for (const int rank : {a, b}) {
      std::uint64_t found[2] = {};
      team_.use(rank);
      gpu::require(cudaMemcpy(found, words_[static_cast<std::size_t>(rank)].local(line), payload,
                              cudaMemcpyDeviceToHost),
                   "reading an inbox");
      const auto sent = marks.begin() + (rank == a ? 2 : 0);
      if (!std::equal(found, found + count, sent))
        throw error(errc::internal, "bench rma: rank " + std::to_string(rank) +
                                        " received something else than was sent");
    }
  }

  gpu_team& team_;
  std::vector<symmetric<std::uint64_t>> words_;
  std::vector<symmetric<packet>> packets_;
  std::vector<symmetric<std::uint64_t>> barriers_;
  std::uint64_t* took_ns_ = nullptr;
  std::uint64_t used_ = 0;
};

constexpr int variants = 7;

}  // namespace

std::vector<rma_figure> measure_latencies(gpu_team& team, const rma_suite_options& options) {
  latency_bench bench(team);
  std::vector<double> seconds[variants];
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    seconds[0].push_back(bench.one_way<ping::maximum>(1));
    seconds[1].push_back(bench.one_way<ping::store>(1));
    seconds[2].push_back(bench.one_way<ping::put>(1));
    seconds[3].push_back(bench.one_way<ping::small_put>(1));
    seconds[4].push_back(bench.one_way<ping::packet_8>(1));
    seconds[5].push_back(bench.one_way<ping::packet_16>(1));
    seconds[6].push_back(bench.barrier());
    if (options.progress) options.progress();
  }
  std::vector<rma_figure> figures;
  const auto add = [&](std::string what, std::string method, double bar) {
    rma_figure f;
    f.table = rma_table::latency;
    f.what = std::move(what);
    f.method = std::move(method);
    f.blocks = 1;
    f.time = spread_of(seconds[figures.size()]);
    f.bound = 1.33e-6;  // a flag alone: st.release.sys, polled with ld.acquire.sys
    f.bar = bar;
    figures.push_back(std::move(f));
  };
  add("signal, one way", "maximum", 0);
  add("signal, one way", "release store", 0);
  add("16 bytes and signal, one way", "put_with_signal", 1.6e-6);
  add("16 bytes and signal, one way", "small_put_with_signal", 1.6e-6);
  add("8 bytes, one way", "flag in data", 1.45e-6);
  add("16 bytes, one way", "flag in data", 1.45e-6);
  add("barrier of " + std::to_string(team.size()) + " ranks in a kernel", "device_barrier",
      team.size() <= 4 ? 3.5e-6 : 4e-6);
  figures.back().to = -1;
  return figures;
}

int latency_steps(int repeats) { return repeats; }

}  // namespace untax::bench
