#include "shared_streams.hpp"

#include <array>
#include <atomic>
#include <map>

#include "driver.hpp"
#include "src/symmetric/queues.hpp"

namespace untax::gpu {
namespace {

std::atomic<bool> sharing{false};

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "no stream");
  return stream;
}

/// The pool is never destroyed: at the end of the process, CUDA may end before static objects do.
stream_pool& pool() {
  static auto* const streams = new stream_pool([](int) { return make_stream(); });
  return *streams;
}

using held = std::array<std::weak_ptr<CUstream_st>, static_cast<std::size_t>(stream_use::kinds)>;

}  // namespace

void share_streams() noexcept { sharing = true; }

std::shared_ptr<CUstream_st> stream_for(stream_use use) {
  if (!sharing) return {make_stream(), [](cudaStream_t s) { cudaStreamDestroy(s); }};
  thread_local std::map<int, held> mine;
  int device = 0;
  require(cudaGetDevice(&device), "cannot read the current device for a stream");
  std::weak_ptr<CUstream_st>& known = mine[device][static_cast<std::size_t>(use)];
  std::shared_ptr<CUstream_st> stream = known.lock();
  if (!stream) {
    stream = {static_cast<cudaStream_t>(pool().take(device)),
              [device](cudaStream_t s) { pool().give_back(device, s); }};
    known = stream;
  }
  return stream;
}

int shared_streams(int device) { return pool().made(device); }

}  // namespace untax::gpu
