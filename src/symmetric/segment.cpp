#include <untax/symmetric/segment.hpp>

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): pthread_sigmask(3) is POSIX
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

#include "src/core/system_message.hpp"

namespace untax {
namespace {

[[noreturn]] void refuse(const segment_layout& layout, int failure) {
  const char* limit = failure == EFBIG ? ", by the limit of file sizes, ulimit -f" : "";
  throw error(errc::out_of_memory,
              fmt::format("cannot map {} for the symmetric heaps of {} ranks ({}{}); they have to "
                          "be smaller than {} each ({}, or the world's option)",
                          format_bytes(layout.total()), layout.ranks, system_message(failure),
                          limit, format_bytes(layout.arena_bytes), variable::heap_bytes.name));
}

void check(const segment_layout& layout) {
  const auto ranks = static_cast<std::size_t>(layout.ranks);
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  const std::size_t rounding = layout.arena_page + segment_layout::stop_bytes;
  if (layout.arena_bytes > (most - layout.control_span()) / ranks - rounding) {
    throw error(errc::out_of_memory,
                fmt::format("a symmetric heap of {} bytes for each of {} ranks is more than can be "
                            "addressed; it has to be smaller ({}, or the world's option)",
                            layout.arena_bytes, layout.ranks, variable::heap_bytes.name));
  }
}

std::byte* map(const segment_layout& layout, int flags, int descriptor) {
  void* base = mmap(nullptr, layout.total(), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | flags, descriptor, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

/// Sets the size of a file. Returns the errno of a failure, or 0. A limit of file sizes also raises
/// SIGXFSZ, which would end the process; this blocks and consumes the signal.
int resize(int descriptor, std::size_t bytes) {
  sigset_t too_large;
  sigemptyset(&too_large);
  sigaddset(&too_large, SIGXFSZ);
  sigset_t before;
  sigset_t pending;
  pthread_sigmask(SIG_BLOCK, &too_large, &before);
  sigpending(&pending);
  const int failure = ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  constexpr timespec at_once{};
  if (failure == EFBIG && sigismember(&pending, SIGXFSZ) == 0)
    sigtimedwait(&too_large, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failure;
}

}  // namespace

segment segment::anonymous(const segment_layout& layout) {
  check(layout);
  std::byte* base = map(layout, MAP_ANONYMOUS, -1);
  if (base == nullptr) refuse(layout, errno);
  return {base, layout, -1};
}

segment segment::shareable(const segment_layout& layout) {
  check(layout);
  const int descriptor = memfd_create("untax", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) refuse(layout, errno);
  segment made(nullptr, layout, descriptor);
  if (const int failure = resize(descriptor, layout.total())) refuse(layout, failure);
  // After sealing, no rank can shrink the file and so kill another one by SIGBUS.
  if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    refuse(layout, errno);
  made.base_ = map(layout, 0, descriptor);
  if (made.base_ == nullptr) refuse(layout, errno);
  return made;
}

segment segment::attach(int descriptor, const segment_layout& layout) {
  segment made(nullptr, layout, descriptor);
  struct stat status {};
  if (fstat(descriptor, &status) != 0 ||
      static_cast<std::size_t>(status.st_size) != layout.total()) {
    throw error(errc::invalid_argument, fmt::format("the shared segment has {} bytes instead of {}",
                                                    status.st_size, layout.total()));
  }
  made.base_ = map(layout, 0, descriptor);
  if (made.base_ == nullptr) refuse(layout, errno);
  return made;
}

segment::segment(segment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      layout_(other.layout_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      devices_(std::move(other.devices_)) {}

segment& segment::operator=(segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(layout_, other.layout_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(devices_, other.devices_);
  return *this;
}

segment::~segment() {
  devices_.reset();  // first, since it has registered the control region
  close_descriptor();
  if (base_ != nullptr) munmap(base_, layout_.total());
}

void segment::close_descriptor() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void segment::put_arenas(std::unique_ptr<device_arenas> arenas) noexcept {
  devices_ = std::move(arenas);
}

std::byte* segment::arena(int rank) const noexcept {
  std::byte* const first =
      devices_ ? devices_->base() + segment_layout::stop_bytes : base_ + layout_.control_span();
  return first + static_cast<std::size_t>(rank) * layout_.arena_span();
}

std::uint64_t* segment::stop_word(int rank) const noexcept {
  return reinterpret_cast<std::uint64_t*>(arena(rank) - segment_layout::stop_bytes);
}

void segment::fill(int rank, std::byte* at, std::byte value, std::size_t bytes) const {
  if (bytes == 0) return;
  if (devices_) return devices_->fill(rank, at, value, bytes);
  std::memset(at, std::to_integer<int>(value), bytes);
}

std::size_t segment::matching(int rank, const std::byte* at, std::byte value,
                              std::size_t bytes) const {
  const auto differs = [value](std::byte b) { return b != value; };
  if (!devices_) return static_cast<std::size_t>(std::find_if(at, at + bytes, differs) - at);
  std::array<std::byte, 4096> copy;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, copy.size());
    devices_->read(rank, copy.data(), at + done, part);
    const auto match = std::find_if(copy.begin(), copy.begin() + part, differs);
    done += static_cast<std::size_t>(match - copy.begin());
    if (match != copy.begin() + part) return done;
  }
  return bytes;
}

int segment::owner_of(const void* p, std::size_t bytes) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto first = reinterpret_cast<std::uintptr_t>(arena(0));
  if (address < first) return -1;
  const std::size_t offset = address - first;
  const std::size_t rank = offset / layout_.arena_span();
  if (rank >= static_cast<std::size_t>(layout_.ranks)) return -1;
  const std::size_t inside = offset - rank * layout_.arena_span();
  if (inside > layout_.arena_bytes || bytes > layout_.arena_bytes - inside) return -1;
  return static_cast<int>(rank);
}

void* segment::translate(const void* p, int peer) const {
  if (!reachable(peer)) {
    throw error(errc::invalid_argument,
                fmt::format("there is no rank {}; ranks are 0 to {}", peer, ranks() - 1));
  }
  const int owner = owner_of(p);
  if (owner < 0) {
    throw error(
        errc::not_symmetric,
        fmt::format(
            "{} does not lie in the symmetric heap of any rank; allocate it with world::allocate",
            p));
  }
  return arena(peer) + (static_cast<const std::byte*>(p) - arena(owner));
}

}  // namespace untax
