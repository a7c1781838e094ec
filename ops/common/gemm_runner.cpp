#include "ops/common/gemm_runner.hpp"

#include <fmt/format.h>

#include "ops/common/arguments.hpp"

namespace untax {

gemm_runner::~gemm_runner() {
  if (device && ranks.unwinding()) result.abandon();
}

void gemm_runner::run(std::int64_t rows, const const_matrix& a, const const_matrix& weights,
                      const matrix& c, stream_ref stream) {
  if (device) {
    if (plans) device->set_rows(rows, stream);
    // A run without rows launches nothing.
    if (rows > 0 || !plans) device->run(a, weights, c, stream);
    return;
  }
  argument_check{name, ranks.rank()}.no_stream(stream);
  host::operand_table operands;
  operands[operand::a] = local_operand(a, ranks.rank());
  operands[operand::b] = local_operand(weights, ranks.rank());
  operands[operand::c] = local_operand(as_const(c), ranks.rank());
  if (result) operands[operand::c].bytes_per_rank = result->span();
  if (plans) return engine->run(operands, rows);
  engine->run(operands);
}

owned_symmetric<std::byte> allocate_result(world& w, std::string_view name, const extent& size,
                                           dtype type) {
  return w.allocate_owned<std::byte>(static_cast<std::size_t>(size.elements()) * size_of(type),
                                     fmt::format("{} result", name));
}

}  // namespace untax
