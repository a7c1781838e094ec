#pragma once

namespace untax {

/// Says whether the calling thread has to leave what it waits for, such as after Ctrl-C.
using interrupt_check = int (*)();

/// Sets what `interrupted` asks; null for nothing. Any thread may call it.
void set_interrupt(interrupt_check check) noexcept;

/// Whether the calling thread has to leave its wait. To be called again and again by waits that
/// last: it asks at most every 20 ms.
[[nodiscard]] bool interrupted() noexcept;

}  // namespace untax
