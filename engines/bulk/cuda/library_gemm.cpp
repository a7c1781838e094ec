#include "engines/bulk/library_gemm.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/cuda/blas_library.hpp"
#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

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
    const auto n = count(product.n);
    const auto k = count(product.k);
    // The library is column-major: it computes C^T = B * A^T, and sees B as stored transposed.
    require(library_.describe(&what_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    require(library_.set(what_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
            "cublasLtMatmulDescSetAttribute");
    const cudaDataType_t in = element(product.type);
    require(library_.lay_out(&b_, in, k, n, b_stride), "cublasLtMatrixLayoutCreate");
    lay_out_rows(product.m);
    ways_ = found_ways(asked_ways);
  }
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call() {
    if (what_ != nullptr) library_.forget(what_);
    forget_rows();
    if (b_ != nullptr) library_.forget_layout(b_);
  }

  void run(int way, const void* a, const void* b, void* c, stream_ref stream) const {
    const float scale = 1;
    const float beta = product_.adds ? 1.0F : 0.0F;
    require(library_.matmul(handle_, what_, &scale, b, b_, a, a_, &beta, c, c_, c, c_,
                            &algorithm(way), workspace_.data(), workspace_bytes,
                            static_cast<cudaStream_t>(stream.handle)),
            "cublasLtMatmul");
  }

  void set_rows(std::int64_t m) {
    if (m != rows_) lay_out_rows(m);
  }

  void vary_rows(std::int64_t least) {
    const auto bytes = [](std::int64_t count, std::int64_t stride, std::int64_t cols, dtype type) {
      return static_cast<std::size_t>((count - 1) * stride + cols) * size_of(type);
    };
    const scratch a(bytes(product_.m, product_.a_stride, product_.k, product_.type));
    const scratch b(bytes(product_.n, product_.b_stride, product_.k, product_.type));
    const scratch c(bytes(product_.m, product_.c_stride, product_.n, product_.result));
    const gpu::stream stream;
    std::vector<cublasLtMatmulAlgo_t> loaded;
    for (std::int64_t m = std::min(least, product_.m);; m = std::min(m + step_at(m), product_.m)) {
      lay_out_rows(m);
      const cublasLtMatmulAlgo_t& algo = of_rows_[m] = found_ways(1).front();
      const auto is_same = [&](const cublasLtMatmulAlgo_t& other) {
        return std::equal(std::begin(other.data), std::end(other.data), std::begin(algo.data));
      };
      if (std::ranges::none_of(loaded, is_same)) {
        loaded.push_back(algo);
        run(preferred, a.data(), b.data(), c.data(), stream_ref(stream.get()));
      }
      if (m == product_.m) break;
    }
    gpu::require(cudaStreamSynchronize(stream.get()), "cuBLASLt failed");
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
  static std::uint64_t count(std::int64_t number) { return static_cast<std::uint64_t>(number); }

  /// The algorithm number `way` for the product's own m or, if m varies, for the rows that are set.
  /// An algorithm also multiplies fewer rows than it was found for, but that can take twice as
  /// long: one for 320 rows took 220 us with 294 rows, which take 130 us with the algorithm for
  /// 294.
  [[nodiscard]] const cublasLtMatmulAlgo_t& algorithm(int way) const {
    return of_rows_.empty() ? ways_[static_cast<std::size_t>(way)]
                            : of_rows_.lower_bound(rows_)->second;
  }
  /// The distance from a number of rows that has an algorithm of its own to the next such number.
  static std::int64_t step_at(std::int64_t m) {
    constexpr std::int64_t few = 512;
    const auto octave = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(m)));
    return m < few ? 1 : octave / 64;
  }

  void forget_rows() {
    for (cublasLtMatrixLayout_t* layout : {&a_, &c_}) {
      if (*layout != nullptr) library_.forget_layout(std::exchange(*layout, nullptr));
    }
  }
  void lay_out_rows(std::int64_t m) {
    forget_rows();
    rows_ = m;
    require(library_.lay_out(&a_, element(product_.type), count(product_.k), count(m),
                             product_.a_stride),
            "cublasLtMatrixLayoutCreate");
    require(library_.lay_out(&c_, element(product_.result), count(product_.n), count(m),
                             product_.c_stride),
            "cublasLtMatrixLayoutCreate");
  }

  static const blas_library& usable() {
    if (!blas().there) throw error(errc::unsupported, "this needs cuBLASLt: " + blas().text);
    return blas_library::get();
  }

  /// The algorithms for the rows that are set: at most `most`, and at least one.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> found_ways(int most) {
    cublasLtMatmulPreference_t preference = nullptr;
    require(library_.prefer(&preference), "cublasLtMatmulPreferenceCreate");
    require(library_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                    &workspace_bytes, sizeof workspace_bytes),
            "cublasLtMatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t heuristics[asked_ways] = {};
    int number = 0;
    const cublasStatus_t status =
        library_.heuristic(handle_, what_, b_, a_, c_, c_, preference, most, heuristics, &number);
    library_.forget_preference(preference);
    std::vector<cublasLtMatmulAlgo_t> ways;
    for (int i = 0; i < number; ++i) {
      if (heuristics[i].state == CUBLAS_STATUS_SUCCESS) ways.push_back(heuristics[i].algo);
    }
    if (status == CUBLAS_STATUS_SUCCESS && !ways.empty()) return ways;
    throw error(errc::unsupported,
                fmt::format("cuBLASLt cannot multiply m {}, n {}, k {}, {}", rows_, product_.n,
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
  std::int64_t rows_ = 0;  ///< m of the next run
  std::vector<cublasLtMatmulAlgo_t> ways_;
  /// The algorithms by the most rows that each serves; empty: m is fixed.
  std::map<std::int64_t, cublasLtMatmulAlgo_t> of_rows_;
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
void library_gemm::set_rows(std::int64_t m) { call_->set_rows(m); }
void library_gemm::vary_rows(std::int64_t least) { call_->vary_rows(least); }

}  // namespace untax::bulk
