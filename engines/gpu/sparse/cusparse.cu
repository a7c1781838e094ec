// Products by cuSPARSE, with cusparseSpMV_preprocess once for each matrix.

#include <mutex>

#include "engines/gpu/sparse/cusparse_library.hpp"
#include "engines/gpu/sparse/formats.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

/// Serialises calls of all types of values, since they share a handle, which has one stream.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

template <class T>
constexpr cudaDataType value_type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
template <class T>
constexpr cusparseIndexType_t index_type = sizeof(T) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;

template <class Value>
class cusparse final : public device_kernel<Value> {
 public:
  template <class Offset>
  cusparse(const device_csr<Value, Offset>& m, spmv_kernel which, cudaStream_t stream)
      : handle_(library_.handle_here()), empty_(m.rows == 0) {
    if (empty_) return;
    if (m.elements == 0 || m.cols == 0)
      throw error(errc::unsupported, "cuSPARSE is not asked for matrices without elements");
    try {
      describe(m, which, stream);
      analyse(m, stream);
    } catch (...) {
      forget();
      throw;
    }
  }
  cusparse(const cusparse&) = delete;
  cusparse& operator=(const cusparse&) = delete;
  ~cusparse() override { forget(); }

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (empty_) return;
    const std::scoped_lock lock(one_at_a_time());
    library_.require(library_.set_stream(handle_, stream), "cusparseSetStream");
    library_.require(library_.set_values(x_, const_cast<Value*>(v.x)), "cusparseDnVecSetValues");
    library_.require(library_.set_values(y_, v.y), "cusparseDnVecSetValues");
    in_order(order_, stream, [&] {
      library_.require(
          library_.multiply(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &v.alpha, matrix_, x_,
                            &v.beta, y_, value_type<Value>, algorithm_, scratch_.data()),
          "cusparseSpMV");
    });
  }

 private:
  template <class Offset>
  void describe(const device_csr<Value, Offset>& m, spmv_kernel which, cudaStream_t stream) {
    const auto base = CUSPARSE_INDEX_BASE_ZERO;
    if (which == spmv_kernel::cusparse_coo) {
      rows_ = rows_of_elements(m, stream);
      library_.require(
          library_.create_coo(&matrix_, m.rows, m.cols, m.elements, rows_.data(), m.columns,
                              m.values, CUSPARSE_INDEX_32I, base, value_type<Value>),
          "cusparseCreateConstCoo");
      algorithm_ = CUSPARSE_SPMV_COO_ALG1;
    } else if (which == spmv_kernel::cusparse_sell) {
      slices_ = slices_of(m, false, stream);
      // Columns have 32 bits, and the library requires slice offsets of the same width.
      begins_ = narrow_begins(slices_, stream);
      library_.require(
          library_.create_slices(&matrix_, m.rows, m.cols, m.elements, slices_.stored, slice_rows,
                                 begins_.data(), slices_.columns.data(), slices_.values.data(),
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, base, value_type<Value>),
          "cusparseCreateConstSlicedEll");
      algorithm_ = CUSPARSE_SPMV_SELL_ALG1;
    } else {
      library_.require(
          library_.create_csr(&matrix_, m.rows, m.cols, m.elements, m.offsets, m.columns, m.values,
                              index_type<Offset>, CUSPARSE_INDEX_32I, base, value_type<Value>),
          "cusparseCreateConstCsr");
      algorithm_ =
          which == spmv_kernel::cusparse_csr1 ? CUSPARSE_SPMV_CSR_ALG1 : CUSPARSE_SPMV_CSR_ALG2;
    }
  }

  template <class Offset>
  void analyse(const device_csr<Value, Offset>& m, cudaStream_t stream) {
    // A placeholder for x and y until `run` sets them.
    const device_array<Value> place(m.rows > m.cols ? m.rows : m.cols, stream);
    const std::scoped_lock lock(one_at_a_time());
    const Value alpha = 1;
    const Value beta = 0;
    library_.require(library_.set_stream(handle_, stream), "cusparseSetStream");
    library_.require(library_.create_vector(&x_, m.cols, place.data(), value_type<Value>),
                     "cusparseCreateDnVec");
    library_.require(library_.create_vector(&y_, m.rows, place.data(), value_type<Value>),
                     "cusparseCreateDnVec");
    std::size_t bytes = 0;
    library_.require(
        library_.buffer_size(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix_, x_, &beta,
                             y_, value_type<Value>, algorithm_, &bytes),
        "cusparseSpMV_bufferSize");
    scratch_ = device_array<char>(static_cast<std::int64_t>(bytes > 0 ? bytes : 1), stream);
    library_.require(
        library_.preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix_, x_, &beta,
                            y_, value_type<Value>, algorithm_, scratch_.data()),
        "cusparseSpMV_preprocess");
  }

  void forget() noexcept {
    if (matrix_ != nullptr) library_.destroy_matrix(matrix_);
    if (x_ != nullptr) library_.destroy_vector(x_);
    if (y_ != nullptr) library_.destroy_vector(y_);
  }

  const cusparse_library& library_ = cusparse_library::get();
  cusparseHandle_t handle_;
  bool empty_;
  device_array<std::int32_t> rows_;
  slices<Value> slices_;
  device_array<std::int32_t> begins_;
  device_array<char> scratch_;
  stream_order order_;
  cusparseConstSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr;
  cusparseDnVecDescr_t y_ = nullptr;
  cusparseSpMVAlg_t algorithm_ = CUSPARSE_SPMV_ALG_DEFAULT;
};

}  // namespace

template <class Value, class Offset>
device_kernel_of<Value> make_cusparse(const device_csr<Value, Offset>& matrix, spmv_kernel which,
                                      cudaStream_t stream) {
  return std::make_unique<cusparse<Value>>(matrix, which, stream);
}

#define UNTAX_MAKE(Value, Offset)                                                         \
  template device_kernel_of<Value> make_cusparse(const device_csr<Value, Offset>& matrix, \
                                                 spmv_kernel which, cudaStream_t stream);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
