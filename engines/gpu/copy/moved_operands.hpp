#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/step.hpp>

#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// Rows of bytes that a copy moves. A pitch is the distance between the beginnings of two rows.
struct copied_rows {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;

  /// Whether rows have no gaps between them.
  [[nodiscard]] bool dense() const { return to_pitch == row_bytes && from_pitch == row_bytes; }
};

/// The addresses of the operands of copy steps. Elements have 2 bytes; strides are in elements.
struct moved_operands {
  run_arguments run;
  std::int64_t a_stride = 0;
  std::int64_t inbox_stride = 0;
  std::int64_t outbox_stride = 0;
  std::int64_t outbox_begin = 0;  ///< bytes from the inbox to the outbox, which follows it
  std::int64_t c_stride = 0;      ///< of the result; `run.between`: from a rank's C to the next one

  [[nodiscard]] UNTAX_HOST_DEVICE std::uint16_t* at(const place& p) const {
    if (p.of == operand::a) return element(const_cast<std::byte*>(run.in), p, a_stride);
    if (p.of == operand::c)
      return element(run.out + (p.rank - run.world.rank) * run.between, p, c_stride);
    std::byte* const inbox = run.inbox.at(p.rank);
    return p.of == operand::inbox ? element(inbox, p, inbox_stride)
                                  : element(inbox + outbox_begin, p, outbox_stride);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE std::int64_t stride_of(operand of) const {
    if (of == operand::c) return c_stride;
    return of == operand::a ? a_stride : of == operand::inbox ? inbox_stride : outbox_stride;
  }
  [[nodiscard]] copied_rows rows_of(const step& s) const {
    const auto bytes = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * 2; };
    return {.to = at(s.to),
            .from = at(s.from),
            .to_pitch = bytes(stride_of(s.to.of)),
            .from_pitch = bytes(stride_of(s.from.of)),
            .row_bytes = bytes(s.cols),
            .rows = static_cast<std::size_t>(s.rows)};
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE static std::uint16_t* element(std::byte* first, const place& p,
                                                                std::int64_t stride) {
    return reinterpret_cast<std::uint16_t*>(first) + p.row * stride + p.col;
  }
};

}  // namespace untax::gpu
