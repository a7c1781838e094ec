#include <untax/core/error.hpp>
#include <untax/sparse/device_spmv.hpp>

#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

constexpr const char* reason =
    "products of sparse matrices on GPUs need CUDA, and this program was built without it; "
    "configure with -DUNTAX_CUDA=ON where nvcc is installed";

[[noreturn]] void refuse() { throw error(errc::unsupported, reason); }

}  // namespace

template <class Value>
class device_kernel {};

template <class Value, class Offset>
device_spmv<Value, Offset>::device_spmv(const device_csr<Value, Offset>& /*matrix*/,
                                        spmv_kernel kernel, stream_ref /*stream*/)
    : which_(kernel) {
  refuse();
}
template <class Value, class Offset>
device_spmv<Value, Offset>::~device_spmv() = default;
template <class Value, class Offset>
device_spmv<Value, Offset>::device_spmv(device_spmv&&) noexcept = default;
template <class Value, class Offset>
device_spmv<Value, Offset>& device_spmv<Value, Offset>::operator=(device_spmv&&) noexcept = default;
template <class Value, class Offset>
void device_spmv<Value, Offset>::run(Value /*alpha*/, const Value* /*x*/, Value /*beta*/,
                                     Value* /*y*/, stream_ref /*stream*/) const {
  refuse();
}

#define UNTAX_SPMV(Value, Offset) template class device_spmv<Value, Offset>;
UNTAX_SPARSE_TYPES(UNTAX_SPMV)
#undef UNTAX_SPMV

template <class Offset>
row_bounds bounds_of_rows(std::int64_t /*rows*/, const Offset* /*offsets*/, stream_ref /*stream*/) {
  refuse();
}
template row_bounds bounds_of_rows(std::int64_t, const std::int32_t*, stream_ref);
template row_bounds bounds_of_rows(std::int64_t, const std::int64_t*, stream_ref);

const std::string& cusparse_text() {
  static const std::string text = reason;
  return text;
}

}  // namespace untax::sparse
