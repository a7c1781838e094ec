#pragma once

namespace untax {

/// A function that says whether the calling thread has to leave its wait, for example after Ctrl-C.
using interrupt_check = int (*)();

/// Sets the function that `interrupted` calls; null: none. Any thread may call it.
void set_interrupt(interrupt_check check) noexcept;

/// Whether the calling thread has to leave its wait. Waits that last call it again and again: it
/// calls the check at most every 20 ms.
[[nodiscard]] bool interrupted() noexcept;

}  // namespace untax
