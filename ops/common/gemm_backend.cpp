#include "ops/common/gemm_backend.hpp"

#include <fmt/format.h>

#include "ops/common/arguments.hpp"
#include "ops/common/planned_gemm.hpp"

namespace untax {

void host_gemm::run(std::int64_t rows, const const_matrix& a, const const_matrix& weights,
                    const matrix& c, stream_ref stream) {
  argument_check{name_, rank_}.no_stream(stream);
  host::operand_table operands;
  operands[operand::a] = local_operand(a, rank_);
  operands[operand::b] = local_operand(weights, rank_);
  operands[operand::c] = local_operand(as_const(c), rank_);
  operands[operand::c].bytes_per_rank = c_span_;
  if (plans_) return engine_.run(operands, rows);
  engine_.run(operands);
}

planned_gemm::~planned_gemm() {
  if (backend && on_gpus() && ranks.unwinding()) result.abandon();
}

owned_symmetric<std::byte> allocate_result(world& w, std::string_view name, const extent& size,
                                           dtype type) {
  return w.allocate_owned<std::byte>(static_cast<std::size_t>(size.elements()) * size_of(type),
                                     fmt::format("{} result", name));
}

}  // namespace untax
