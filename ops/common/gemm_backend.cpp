#include "ops/common/gemm_backend.hpp"

#include "ops/common/arguments.hpp"

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

}  // namespace untax
