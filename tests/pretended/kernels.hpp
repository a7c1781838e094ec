#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

/// Kernels that note what they are asked for. Each rank is a thread, and has notes of its own.
namespace pretended {

using lines = std::vector<std::string>;

/// A world of so many pretended GPUs; `body` begins without notes.
void on_gpus(int ranks, const std::function<void(untax::world&)>& body);

/// The calls that were recorded since the last call of this.
[[nodiscard]] lines noted();
/// "1: 0x7ffe...": what runs note of an address.
[[nodiscard]] std::string text_of(const void* p);

/// A stream of the caller; while it is captured, and not.
[[nodiscard]] untax::stream_ref a_stream();
[[nodiscard]] untax::stream_ref captured_stream();

/// Memory of the host that no kernel of this rank reaches, from here on; null: none.
void put_out_of_reach(const void* p);
/// From here on, heaps can grow by so many bytes in the memory of a device.
void leave_memory(int device, std::size_t bytes);
/// No device has such a limit any more.
void leave_all_memory();
/// The next launch of this rank's kernels throws `why`, once; "" for none.
void fail_next(const std::string& why);
/// The same of the launch after the next one.
void fail_second(const std::string& why);

/// How many runs of this rank were kept in order with others since the last call.
[[nodiscard]] int runs_in_order();

/// The entries of a rank in the ledger from entry `from` on, which is advanced.
[[nodiscard]] lines told(untax::world& w, std::uint64_t& from);

}  // namespace pretended
