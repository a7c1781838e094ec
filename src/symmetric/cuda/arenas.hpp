#pragma once

#include <string>
#include <vector>

#include "src/symmetric/device_memory.hpp"
#include "vmm.hpp"

namespace untax::gpu {

/// Arenas in the memory of GPUs. Registers the control region, so that kernels reach it.
class arenas final : public device_arenas {
 public:
  /// All lists are by rank. `devices` is -1 for ranks of other processes. `parts` are mapped, and
  /// the arenas of this process are cleared as far as they have memory. Errors contain the entry of
  /// `whereabouts` of a rank whose memory cannot be reached.
  arenas(const segment& memory, const std::vector<int>& devices,
         const std::vector<allocation>& parts, const std::vector<std::string>& whereabouts);
  ~arenas() override;

  [[nodiscard]] std::byte* base() const noexcept override { return range_.base(); }
  [[nodiscard]] int device_of(int rank) const noexcept override { return seat_of(rank).device; }
  void use(int rank) const override;
  void extend(int rank, std::size_t offset, std::size_t bytes, const device_share& memory) override;
  void extend(int rank, std::size_t offset, std::size_t bytes, int descriptor) override;
  void finish(int rank) const noexcept override;
  void fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const override;
  void read(int rank, std::byte* to, const std::byte* from, std::size_t bytes) const override;
  bool send_word(int rank, std::uint64_t* to, const std::uint64_t* from) const noexcept override;
  [[nodiscard]] void* address_on_device(int rank, const void* host) const override;
  [[nodiscard]] std::int64_t clock_offset(int rank) const noexcept override {
    return seat_of(rank).clock_offset;
  }

 private:
  /// The device, context and streams of a rank of this process.
  struct seat {
    int device = -1;
    CUcontext context = nullptr;
    cudaStream_t stream = nullptr;
    cudaStream_t urgent = nullptr;  // for words that are sent while `stream` is blocked
    bool has_streams = false;       // owns its streams; otherwise another rank on its device does
    std::int64_t clock_offset = 0;
  };

  [[nodiscard]] const seat& seat_of(int rank) const noexcept {
    return seats_[static_cast<std::size_t>(rank)];
  }
  void open_seats(const std::vector<int>& devices);
  void register_control(const segment& memory);
  void let_in(int part, std::size_t offset, std::size_t bytes) const;
  void release() noexcept;

  address_range range_;
  std::vector<std::string> whereabouts_;
  std::vector<seat> seats_;
  std::byte* control_ = nullptr;
};

}  // namespace untax::gpu
