// Stand-ins for the devices that builds without CUDA refuse (src/symmetric/no_cuda): eight devices
// in host memory. They compute nothing, but worlds and operators run up to their kernels.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/memory/host_memory.hpp>

#include "src/symmetric/device_memory.hpp"
#include "tests/pretended/kernels.hpp"

namespace pretended {
namespace {

constexpr int devices = 8;
std::array<std::atomic<std::size_t>, devices> more_than_left = {};  // 0: no limit

}  // namespace

void leave_memory(int device, std::size_t bytes) {
  more_than_left.at(static_cast<std::size_t>(device)) = bytes + 1;
}
void leave_all_memory() {
  for (auto& limit : more_than_left) limit = 0;
}

}  // namespace pretended

namespace untax {
namespace {

constexpr int devices = pretended::devices;
constexpr std::size_t page = 4096;

/// Memory by which a heap grows: the arenas have it already.
class pretended_share final : public device_share {
 public:
  [[nodiscard]] int descriptor() const noexcept override { return -1; }
  [[nodiscard]] device_id id() const noexcept override { return {}; }
};

class pretended_arenas final : public device_arenas {
 public:
  pretended_arenas(std::size_t bytes, std::vector<int> device_of_rank)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
        devices_(std::move(device_of_rank)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  pretended_arenas(const pretended_arenas&) = delete;
  pretended_arenas& operator=(const pretended_arenas&) = delete;
  /// As CUDA does not work in a child process, nothing of it may end there.
  ~pretended_arenas() override {
    if (getpid() != process_) _exit(9);
    munmap(memory_, bytes_);
  }

  [[nodiscard]] std::byte* base() const noexcept override {
    return static_cast<std::byte*>(memory_);
  }
  [[nodiscard]] int device_of(int rank) const noexcept override {
    return devices_[static_cast<std::size_t>(rank)];
  }
  void use(int /*rank*/) const override {}
  void finish(int /*rank*/) const noexcept override {}
  void fill(int /*rank*/, std::byte* at, std::byte value, std::size_t bytes) const override {
    std::memset(at, std::to_integer<int>(value), bytes);
  }
  void read(int /*rank*/, std::byte* to, const std::byte* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool send_word(int /*rank*/, std::uint64_t* to,
                 const std::uint64_t* from) const noexcept override {
    host_memory::raise_release(*to, host_memory::load_acquire(*from));
    return true;
  }
  [[nodiscard]] void* address_on_device(int /*rank*/, const void* host) const override {
    return const_cast<void*>(host);
  }
  [[nodiscard]] std::int64_t clock_offset(int /*rank*/) const noexcept override { return 0; }

 private:
  std::size_t bytes_;
  void* memory_;
  std::vector<int> devices_;
  pid_t process_ = getpid();
};

[[noreturn]] void refuse() { throw error(errc::unsupported, "only pretended for one process"); }

}  // namespace

int visible_devices() { return devices; }
std::string device_name(int /*device*/) { return "pretended"; }
std::size_t device_page(int /*device*/) { return page; }
segment_layout device_layout(int ranks, std::size_t control_bytes, std::size_t first_bytes,
                             std::size_t most_bytes, int /*device*/) {
  return {ranks, control_bytes, most_bytes, memory_kind::cuda, page, first_bytes};
}
void use_device(int /*device*/) {}
void share_device_streams() noexcept {}

std::unique_ptr<device_share> device_share::make(int rank, int device, std::size_t bytes,
                                                 bool shared) {
  if (shared)
    throw error(errc::unsupported, fmt::format("device {} is pretended for one process", device));
  std::atomic<std::size_t>& limit = pretended::more_than_left.at(static_cast<std::size_t>(device));
  if (limit > 0 && bytes >= limit)
    throw error(errc::out_of_memory, fmt::format("rank {}: device {} is full", rank, device));
  if (limit > 0) limit -= bytes;
  return std::make_unique<pretended_share>();
}
std::unique_ptr<device_arenas> arenas_of_this_process(const segment& memory,
                                                      const std::vector<int>& of_ranks) {
  return std::make_unique<pretended_arenas>(memory.layout().all_arenas(), of_ranks);
}
std::unique_ptr<device_arenas> arenas_of_processes(const segment& /*memory*/, int /*rank*/,
                                                   int /*device*/,
                                                   std::unique_ptr<device_share> /*mine*/,
                                                   const device_shares& /*all*/) {
  refuse();
}

}  // namespace untax
