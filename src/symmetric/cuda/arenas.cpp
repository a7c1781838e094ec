#include "arenas.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "clock.hpp"
#include "share.hpp"

namespace untax::gpu {
namespace {

std::string place(int rank, int device) { return fmt::format("rank {} (GPU {})", rank, device); }

}  // namespace

arenas::arenas(const segment& memory, const std::vector<int>& devices,
               const std::vector<allocation>& parts, const std::vector<std::string>& whereabouts)
    : range_(memory.ranks(), memory.layout().arena_span(), memory.layout().arena_page),
      whereabouts_(whereabouts),
      seats_(devices.size()) {
  const std::size_t first = memory.layout().first_span();
  for (int rank = 0; rank < memory.ranks(); ++rank)
    range_.map(rank, 0, first, parts[static_cast<std::size_t>(rank)]);
  try {
    open_seats(devices);
    for (int rank = 0; rank < memory.ranks(); ++rank) let_in(rank, 0, first);
    register_control(memory);
    for (int rank = 0; rank < memory.ranks(); ++rank) {
      if (device_of(rank) >= 0) fill(rank, range_.part(rank), std::byte{0}, first);
    }
  } catch (...) {
    release();
    throw;
  }
}

arenas::~arenas() { release(); }

void arenas::release() noexcept {
  // Kernels may still use memory that is released here.
  for (int rank = 0; rank < static_cast<int>(seats_.size()); ++rank) finish(rank);
  for (const seat& s : seats_) {
    if (s.context == nullptr || driver().push_context(s.context) != CUDA_SUCCESS) continue;
    if (control_ != nullptr) cudaHostUnregister(std::exchange(control_, nullptr));
    if (s.has_streams && s.stream != nullptr) cudaStreamDestroy(s.stream);
    if (s.has_streams && s.urgent != nullptr) cudaStreamDestroy(s.urgent);
    CUcontext popped = nullptr;
    driver().pop_context(&popped);
  }
  cudaGetLastError();
}

void arenas::open_seats(const std::vector<int>& devices) {
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (devices[rank] < 0) continue;
    seat& s = seats_[rank];
    s.device = devices[rank];
    s.context = context_of(s.device);
    const device_scope scope(s.context);
    const std::string who = place(static_cast<int>(rank), s.device);
    // Ranks that share a GPU share these streams, too, since a GPU has few queues.
    const auto first = std::find_if(seats_.begin(), seats_.end(),
                                    [&](const seat& o) { return o.device == s.device; });
    s.stream = first->stream;
    s.urgent = first->urgent;
    s.clock_offset = first->clock_offset;
    if (&*first != &s) continue;
    s.has_streams = true;
    int least = 0;
    int greatest = 0;
    require(cudaDeviceGetStreamPriorityRange(&least, &greatest), who);
    require(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), who);
    require(cudaStreamCreateWithPriority(&s.urgent, cudaStreamNonBlocking, greatest), who);
    require(measure_clock_offset(s.stream, s.clock_offset),
            who + " does not run a kernel of untax, which is compiled for sm_90a");
  }
}

// Lets every device of this process read and write memory of the arena of a rank.
void arenas::let_in(int part, std::size_t offset, std::size_t bytes) const {
  std::vector<int> ours;
  for (const seat& s : seats_) {
    if (s.device >= 0 && std::find(ours.begin(), ours.end(), s.device) == ours.end())
      ours.push_back(s.device);
  }
  if (range_.allow(part, offset, bytes, ours) == CUDA_SUCCESS) return;
  for (int rank = 0; rank < static_cast<int>(seats_.size()); ++rank) {
    if (device_of(rank) < 0) continue;
    const CUresult result = range_.allow(part, offset, bytes, {device_of(rank)});
    if (result == CUDA_SUCCESS) continue;
    throw error(errc::unsupported, fmt::format("{} cannot reach the memory of rank {}: {}; {}",
                                               place(rank, device_of(rank)), part, text_of(result),
                                               whereabouts_[static_cast<std::size_t>(part)]));
  }
  throw error(errc::internal,
              fmt::format("the memory of rank {} cannot be opened for all GPUs of this process "
                          "together, although each of them alone can open it",
                          part));
}

void arenas::extend(int rank, std::size_t offset, std::size_t bytes, const device_share& memory) {
  range_.map(rank, offset, bytes, static_cast<const cuda_share&>(memory).memory());
  let_in(rank, offset, bytes);
  fill(rank, range_.part(rank) + offset, std::byte{0}, bytes);
}

void arenas::extend(int rank, std::size_t offset, std::size_t bytes, int descriptor) {
  range_.map(rank, offset, bytes, allocation::import(rank, descriptor));
  let_in(rank, offset, bytes);
}

void arenas::register_control(const segment& memory) {
  const auto first = std::find_if(seats_.begin(), seats_.end(),
                                  [](const seat& s) { return s.context != nullptr; });
  const device_scope scope(first->context);
  const std::size_t bytes = memory.layout().control_span();
  require(
      cudaHostRegister(memory.control(), bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
      fmt::format("cannot make {} bytes of host memory visible to GPU {}", bytes, first->device));
  control_ = memory.control();
}

void arenas::use(int rank) const {
  require(cudaSetDevice(device_of(rank)), place(rank, device_of(rank)));
}

void arenas::finish(int rank) const noexcept {
  const seat& s = seat_of(rank);
  if (s.context == nullptr || driver().push_context(s.context) != CUDA_SUCCESS) return;
  if (cudaDeviceSynchronize() != cudaSuccess) cudaGetLastError();
  CUcontext popped = nullptr;
  driver().pop_context(&popped);
}

void arenas::fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const {
  const seat& s = seat_of(rank);
  const device_scope scope(s.context);
  const std::string who = place(rank, s.device);
  require(cudaMemsetAsync(at, std::to_integer<int>(value), bytes, s.stream), who);
  require(cudaStreamSynchronize(s.stream), who);
}

void arenas::read(int rank, std::byte* to, const std::byte* from, std::size_t bytes) const {
  const seat& s = seat_of(rank);
  const device_scope scope(s.context);
  const std::string who = place(rank, s.device);
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s.stream), who);
  require(cudaStreamSynchronize(s.stream), who);
}

// `from` is registered memory, so a copy engine does this even while kernels fill the device.
bool arenas::send_word(int rank, std::uint64_t* to, const std::uint64_t* from) const noexcept {
  const seat& s = seat_of(rank);
  if (s.context == nullptr || driver().push_context(s.context) != CUDA_SUCCESS) return false;
  const cudaError_t result =
      cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyHostToDevice, s.urgent);
  if (result != cudaSuccess) cudaGetLastError();
  CUcontext popped = nullptr;
  driver().pop_context(&popped);
  return result == cudaSuccess;
}

void* arenas::address_on_device(int rank, const void* host) const {
  const seat& s = seat_of(rank);
  const device_scope scope(s.context);
  const std::ptrdiff_t offset = static_cast<const std::byte*>(host) - control_;
  void* address = nullptr;
  require(cudaHostGetDevicePointer(&address, control_, 0), place(rank, s.device));
  return static_cast<std::byte*>(address) + offset;
}

}  // namespace untax::gpu
