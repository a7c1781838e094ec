#include "engines/gpu/matrix/matrix.hpp"

#include <untax/core/error.hpp>

namespace untax::gpu {
namespace {

[[noreturn]] void refuse() {
  throw error(errc::unsupported,
              "matrices of GPUs need CUDA, and this program was built without it; configure with "
              "-DUNTAX_CUDA=ON where nvcc is installed");
}

}  // namespace

void load_matrix_kernels() { refuse(); }
void fill_normal(const matrix& /*to*/, std::uint64_t /*seed*/, range /*rows*/, range /*cols*/,
                 stream_ref /*stream*/) {
  refuse();
}
void fill_nan(void* /*to*/, std::size_t /*bytes*/, stream_ref /*stream*/) { refuse(); }
void multiply_plainly(const const_matrix& /*a*/, const const_matrix& /*b*/, const matrix& /*c*/,
                      stream_ref /*stream*/) {
  refuse();
}
void round_to(const matrix& /*to*/, const const_matrix& /*from*/, stream_ref /*stream*/) {
  refuse();
}
void join_slabs(const void* /*slabs*/, void* /*joined*/, std::int64_t /*rows*/,
                const sharding& /*shards*/, stream_ref /*stream*/) {
  refuse();
}
comparison compare(const const_matrix& /*is*/, const const_matrix& /*should*/, double /*share*/,
                   double /*least_square*/, void* /*scratch*/, stream_ref /*stream*/) {
  refuse();
}

}  // namespace untax::gpu
