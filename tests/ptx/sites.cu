// One small kernel for each site of docs/memory_model.md where an instruction carries order. The
// gate tests/style/ptx.py compiles them and looks for those instructions.
#include <untax/flow/channel.hpp>
#include <untax/memory/block_counters.cuh>
#include <untax/world/device_world.cuh>

#include "engines/gpu/channel/warp_channel.cuh"

using namespace untax;

using ring = bulk_ring<2, 4096>;

extern "C" {

__global__ void site_signal(std::uint64_t* counter, int* data) {
  data[threadIdx.x] = 1;
  signal(device_block{}, counter, 7);
}

__global__ void site_signal_warp(std::uint64_t* counter, int* data) {
  data[threadIdx.x] = 1;
  signal(device_warp{}, counter, 7);
}

__global__ void site_signal_add(std::uint64_t* counter, int* data) {
  data[threadIdx.x] = 1;
  signal_add(device_block{}, counter, 7);
}

__global__ void site_wait(device_world world, std::uint64_t* counter, int* data) {
  auto block = world.block();
  if (wait_until(block, counter, 7)) data[threadIdx.x] = data[threadIdx.x + 1];
}

__global__ void site_put_with_signal(std::uint64_t* counter, int* to, const int* from) {
  put_with_signal(device_block{}, to, from, 4096, counter, 7);
}

__global__ void site_bulk_put(std::uint64_t* counter, int* to, const int* from) {
  __shared__ ring::memory shared;
  const device_block block;
  ring engine(block, shared);
  bulk_put(block, engine, to, from, 4096);
  signal(block, counter, 7);
}

__global__ void site_send_packets(packet* to, const double* from) {
  send_packets(device_warp{}, to, from, 32, 7);
}

__global__ void site_receive_packets(device_world world, packet* from, double* to) {
  auto warp = world.warp(0);
  if (receive_packets(warp, to, from, 32, 7) != wait_outcome::ok) to[0] = 0;
}

__global__ void site_small_put(packet* mailbox, double* from) {
  from[threadIdx.x] = 1;
  small_put_with_signal(device_block{}, mailbox, from, 4096, 7);
}

__global__ void site_receive_small_put(device_world world, packet* mailbox, double* to, int* data) {
  auto block = world.block();
  if (receive_small_put(block, to, mailbox, 32, 7)) data[threadIdx.x] = data[threadIdx.x + 1];
}

__global__ void site_barrier(device_world world, device_barrier barrier, int* data) {
  auto block = world.block();
  if (barrier.arrive_and_wait(block)) data[0] = 1;
}

__global__ void site_quiet(int* data) {
  data[threadIdx.x] = 1;
  quiet(device_block{});
  data[threadIdx.x] = 2;
}

__global__ void site_channel(device_world world, device_barrier, std::uint64_t* counters) {
  struct table {
    std::uint64_t* counters;
    __device__ std::uint64_t& at(int, int index) const { return counters[index]; }
  };
  auto thread = world.thread(0);
  channel<cuda_memory, table, device_watch> c("gate", {counters}, thread.guard());
  const room r{.producer = 0, .consumer = 1, .number = 0, .ready = 0, .free = 1, .use = 2};
  if (c.reserve(r) != wait_outcome::ok) return;
  c.publish(r);
  if (c.acquire(r) != wait_outcome::ok) return;
  c.retire(r, 0);
}

__global__ void site_warp_channel(const __grid_constant__ gpu::run_arguments run) {
  const gpu::warp_channel channel(run, 0);
  const auto rooms = [](int i) {
    return room{.producer = 0, .consumer = 1, .number = i, .ready = i, .free = 2 + i, .use = 2};
  };
  if (!channel.reserve(2, rooms)) return;
  channel.publish(2, rooms);
  if (!channel.acquire(2, rooms)) return;
  channel.retire(2, rooms);
}

__global__ void site_atomics(int* at, std::uint64_t* to) {
  const device_thread self;
  store(self, to, atomic_add(self, at, 1), memory_order::release);
  to[1] = load(self, to, memory_order::acquire);
}

__global__ void site_block_counter(const std::uint64_t* counter, int* data) {
  __shared__ std::uint64_t count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    const bool come = cuda_memory::load_acquire(*counter) >= 7;
    __syncwarp();
    if (come && threadIdx.x == 0) block_counters::raise_release(count, 1);
  } else if (block_counters::load_acquire(count) == 1) {
    data[threadIdx.x] = data[threadIdx.x + 1];
  }
}
}
