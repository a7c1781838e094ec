#include <untax/flow/interrupt.hpp>

#include <atomic>
#include <cstdint>

#include <untax/memory/host_memory.hpp>

namespace untax {
namespace {

constexpr std::uint64_t interval = 20'000'000;  // nanoseconds

std::atomic<interrupt_check> current_check = nullptr;

}  // namespace

void set_interrupt(interrupt_check check) noexcept { current_check = check; }

bool interrupted() noexcept {
  const interrupt_check check = current_check.load();
  if (check == nullptr) return false;
  thread_local std::uint64_t asked = 0;
  const std::uint64_t now = host_memory::now();
  if (now - asked < interval) return false;
  asked = now;
  return check() != 0;
}

}  // namespace untax
