#include "engines/bulk/library_gemm.hpp"

#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/cuda/blas_library.hpp"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bulk {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20U;
constexpr int asked_ways = 8;
/// Measurements rotate through this much memory: more than three times L2.
constexpr std::size_t rotated_bytes = std::size_t{200} << 20U;

cudaDataType_t element(dtype type) {
  switch (type) {
    case dtype::f16:
      return CUDA_R_16F;
    case dtype::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace

class library_gemm::call {
 public:
  explicit call(const library_product& product)
      : product_(product), library_(usable()), workspace_(workspace_bytes) {
    std::int64_t& a_stride = product_.a_stride;
    std::int64_t& b_stride = product_.b_stride;
    std::int64_t& c_stride = product_.c_stride;
    if (a_stride == 0) a_stride = product.k;
    if (b_stride == 0) b_stride = product.k;
    if (c_stride == 0) c_stride = product.n;
    const auto [m, n, k] = std::tuple{rows(product.m), rows(product.n), rows(product.k)};
    // The library is column-major: it computes C^T = B * A^T, and sees B as stored transposed.
    require(library_.describe(&what_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    require(library_.set(what_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
            "cublasLtMatmulDescSetAttribute");
    const cudaDataType_t in = element(product.type);
    require(library_.lay_out(&b_, in, k, n, b_stride), "cublasLtMatrixLayoutCreate");
    require(library_.lay_out(&a_, in, k, m, a_stride), "cublasLtMatrixLayoutCreate");
    require(library_.lay_out(&c_, element(product.result), n, m, c_stride),
            "cublasLtMatrixLayoutCreate");
    find_ways();
  }
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call() {
    if (what_ != nullptr) library_.forget(what_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) library_.forget_layout(layout);
    }
  }

  void run(int way, const void* a, const void* b, void* c, stream_ref stream) const {
    const float one = 1;
    const float beta = product_.adds ? 1.0F : 0.0F;
    require(library_.matmul(handle_, what_, &one, b, b_, a, a_, &beta, c, c_, c, c_,
                            &ways_[static_cast<std::size_t>(way)], workspace_.data(),
                            workspace_bytes, static_cast<cudaStream_t>(stream.handle)),
            "cublasLtMatmul");
  }

  [[nodiscard]] int quickest_way() const {
    const auto span = [](std::int64_t count, std::int64_t stride, std::int64_t cols, dtype type) {
      return round_up<std::size_t>(
          static_cast<std::size_t>((count - 1) * stride + cols) * size_of(type), 256);
    };
    const std::size_t a_bytes = span(product_.m, product_.a_stride, product_.k, product_.type);
    const std::size_t b_bytes = span(product_.n, product_.b_stride, product_.k, product_.type);
    const std::size_t c_bytes = span(product_.m, product_.c_stride, product_.n, product_.result);
    const std::size_t places = rotated_bytes / (a_bytes + b_bytes + c_bytes) + 1;
    const scratch a(a_bytes * places);
    const scratch b(b_bytes * places);
    const scratch c(c_bytes * places);
    const double flops = 2.0 * static_cast<double>(product_.m) * static_cast<double>(product_.n) *
                         static_cast<double>(product_.k);
    const int products = flops < 1e11 ? 8 : 1;
    const std::vector<double> seconds =
        seconds_of(static_cast<int>(ways_.size()), [&](int way, int round, stream_ref stream) {
          if (way == 0 && round == 0) {
            fill(a, a_bytes * places, product_.type, stream);
            fill(b, b_bytes * places, product_.type, stream);
            fill(c, c_bytes * places, product_.result, stream);
          }
          for (int i = 0; i < products; ++i) {
            const std::size_t place = static_cast<std::size_t>(round * products + i) % places;
            run(way, a.data(place * a_bytes), b.data(place * b_bytes), c.data(place * c_bytes),
                stream);
          }
        });
    return least_of(seconds);
  }

  [[nodiscard]] int ways() const noexcept { return static_cast<int>(ways_.size()); }
  int preferred = 0;

 private:
  static void fill(const scratch& memory, std::size_t bytes, dtype type, stream_ref stream) {
    const auto count = static_cast<std::int64_t>(bytes / size_of(type));
    gpu::fill_normal({memory.data(), type, 1, count}, 1, {0, 1}, {0, count}, stream);
  }
  static std::uint64_t rows(std::int64_t count) { return static_cast<std::uint64_t>(count); }
  static const blas_library& usable() {
    if (!blas().there) throw error(errc::unsupported, "this needs cuBLASLt: " + blas().text);
    return blas_library::get();
  }

  void find_ways() {
    cublasLtMatmulPreference_t preference = nullptr;
    require(library_.prefer(&preference), "cublasLtMatmulPreferenceCreate");
    require(library_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                    &workspace_bytes, sizeof workspace_bytes),
            "cublasLtMatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t found[asked_ways] = {};
    int count = 0;
    const cublasStatus_t status =
        library_.heuristic(handle_, what_, b_, a_, c_, c_, preference, asked_ways, found, &count);
    library_.forget_preference(preference);
    for (int i = 0; i < count; ++i) {
      if (found[i].state == CUBLAS_STATUS_SUCCESS) ways_.push_back(found[i].algo);
    }
    if (status == CUBLAS_STATUS_SUCCESS && !ways_.empty()) return;
    throw error(errc::unsupported,
                fmt::format("cuBLASLt cannot multiply m {}, n {}, k {}, {}", product_.m, product_.n,
                            product_.k, name_of(product_.type)));
  }

  library_product product_;
  const blas_library& library_;
  cublasLtHandle_t handle_ = library_.handle_here();
  scratch workspace_;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  std::vector<cublasLtMatmulAlgo_t> ways_;
};

library_gemm::library_gemm(const library_product& product)
    : call_(std::make_unique<call>(product)) {}
library_gemm::library_gemm(library_gemm&&) noexcept = default;
library_gemm& library_gemm::operator=(library_gemm&&) noexcept = default;
library_gemm::~library_gemm() = default;

int library_gemm::ways() const noexcept { return call_->ways(); }
void library_gemm::run(int way, const void* a, const void* b, void* c, stream_ref stream) const {
  call_->run(way, a, b, c, stream);
}
void library_gemm::prefer(int way) noexcept { call_->preferred = way; }
void library_gemm::run(const void* a, const void* b, void* c, stream_ref stream) const {
  call_->run(call_->preferred, a, b, c, stream);
}
void library_gemm::settle() { prefer(call_->quickest_way()); }

}  // namespace untax::bulk
