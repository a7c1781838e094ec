// Stands in for relacy/platform.hpp (cmake/untax_relacy.cmake says why): the same fibers, freed
// when the run is over, and made known to the sanitizer of the program. The code here is never
// instrumented itself, so the build defines RL_ADDRESS_SANITIZER or RL_THREAD_SANITIZER.
#ifndef RL_PLATFORM_HPP
#define RL_PLATFORM_HPP

#include <sys/times.h>
#include <ucontext.h>
#include <unistd.h>

#include "pch.hpp"

#if defined(RL_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(RL_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

inline unsigned get_tick_count() {
  struct tms now;
  return static_cast<unsigned>(times(&now) * (1000 / sysconf(_SC_CLK_TCK)));
}

inline void set_low_thread_prio() {}

struct fiber_t {
  ucontext_t context;
  void* resume[5];
  void (*body)(void*);
  void* argument;
  const void* stack;  // lowest address; of the main fiber, learnt at the first switch away from it
  size_t stack_size;
  fiber_t* previous;  // the fiber that switched to this one last
  void* shadow;       // the sanitizer's data for this fiber
};

namespace rl_fiber {

// Called after a switch: `self` runs again, and `self.previous` was running before.
inline void arrived([[maybe_unused]] fiber_t& self) {
#if defined(RL_ADDRESS_SANITIZER)
  const void* stack = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(self.shadow, &stack, &size);
  self.previous->stack = stack;
  self.previous->stack_size = size;
#endif
}

inline void leaving([[maybe_unused]] fiber_t& from, fiber_t& to) {
  to.previous = &from;
#if defined(RL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&from.shadow, to.stack, to.stack_size);
#elif defined(RL_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.shadow, 0);
#endif
}

inline void entry(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<fiber_t*>((static_cast<uintptr_t>(high) << 32) | low);
  arrived(*self);
  self->body(self->argument);
}

}  // namespace rl_fiber

inline void create_main_fiber(fiber_t& fib) {
  memset(static_cast<void*>(&fib), 0, sizeof(fib));
#if defined(RL_ADDRESS_SANITIZER)
  // A run that finds a fault leaves its fibers where they stood, and what they had allocated with
  // them.
  __lsan_disable();
#elif defined(RL_THREAD_SANITIZER)
  fib.shadow = __tsan_get_current_fiber();
#endif
}

inline void delete_main_fiber([[maybe_unused]] fiber_t& fib) {
#if defined(RL_ADDRESS_SANITIZER)
  __lsan_enable();
#endif
}

inline void create_fiber(fiber_t& fib, void (*body)(void*), void* argument) {
  memset(static_cast<void*>(&fib), 0, sizeof(fib));
  fib.stack_size = 256 * 1024;
  fib.stack = (::malloc)(fib.stack_size);
  fib.body = body;
  fib.argument = argument;
  getcontext(&fib.context);
  fib.context.uc_stack.ss_sp = const_cast<void*>(fib.stack);
  fib.context.uc_stack.ss_size = fib.stack_size;
  const auto self = reinterpret_cast<uintptr_t>(&fib);
  makecontext(&fib.context, reinterpret_cast<void (*)()>(rl_fiber::entry), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
#if defined(RL_THREAD_SANITIZER)
  fib.shadow = __tsan_create_fiber(0);
#endif
}

inline void delete_fiber(fiber_t& fib) {
#if defined(RL_THREAD_SANITIZER)
  __tsan_destroy_fiber(fib.shadow);
#endif
  (::free)(const_cast<void*>(fib.stack));
}

// The built-in jumps make no system call and are not library functions, which the sanitizers and
// _FORTIFY_SOURCE intercept on the assumption that a program has one stack.
inline __attribute__((noinline)) void switch_to_fiber(fiber_t& to, fiber_t& from) {
  if (__builtin_setjmp(from.resume) == 0) {
    const bool fresh = to.body != nullptr && to.previous == nullptr;
    rl_fiber::leaving(from, to);
    if (fresh) setcontext(&to.context);
    __builtin_longjmp(to.resume, 1);
  }
  rl_fiber::arrived(from);
}

#define RL_INLINE inline
#define RL_NOINLINE
#define RL_STRINGIZE_I(text) #text
#define RL_STRINGIZE(text) RL_STRINGIZE_I(text)
#define RL_STDCALL
#define RL_THROW_SPEC(ex) noexcept(false)
#define RL_RESTRICT

#endif
