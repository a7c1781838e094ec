// Products of sparse matrices through the ABI.
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

namespace {

using namespace c_test;

// 1 0 2
// 0 0 0
// 0 3 4
template <class Value, class Offset>
struct small {
  std::vector<Offset> offsets{0, 2, 2, 4};
  std::vector<std::int32_t> columns{0, 2, 1, 2};
  std::vector<Value> values{1, 2, 3, 4};

  [[nodiscard]] untax_csr csr() const {
    return {sizeof(untax_csr),
            3,
            3,
            4,
            offsets.data(),
            columns.data(),
            values.data(),
            8 * sizeof(Offset),
            8 * sizeof(Value)};
  }
};

template <class Value, class Offset>
void multiply_in_all_ways() {
  const small<Value, Offset> m;
  const untax_csr csr = m.csr();
  int on_host = 0;
  for (std::int32_t i = 0; untax_spmv_way(i) != nullptr; ++i) {
    const std::string way = untax_spmv_way(i);
    SCOPED_TRACE(way);
    untax_spmv* product = nullptr;
    const std::int32_t status = untax_spmv_make(&csr, way.c_str(), 2, &product);
    if (way.starts_with("cusparse")) {
      expect_failure(status, untax_unsupported, {way});
      continue;
    }
    ++on_host;
    ASSERT_EQ(status, untax_ok) << last_text();
    const std::vector<Value> x{1, 10, 100};
    std::vector<Value> y{7, 7, 7};
    EXPECT_OK(untax_spmv_run(product, 2, x.data(), 3, -1, y.data(), 3));
    EXPECT_EQ(y, (std::vector<Value>{395, -7, 853}));
    expect_failure(untax_spmv_run(product, 1, x.data(), 2, 0, y.data(), 3), untax_invalid_argument,
                   {"2"});
    expect_failure(untax_spmv_run(product, 1, nullptr, 3, 0, y.data(), 3), untax_invalid_argument,
                   {"x is NULL"});
    EXPECT_GE(untax_spmv_setup_seconds(product), 0);
    EXPECT_OK(untax_spmv_destroy(product));
  }
  EXPECT_GE(on_host, 10);
}

TEST(c_sparse, products_in_all_ways_and_types) {
  multiply_in_all_ways<float, std::int32_t>();
  multiply_in_all_ways<float, std::int64_t>();
  multiply_in_all_ways<double, std::int32_t>();
  multiply_in_all_ways<double, std::int64_t>();
}

TEST(c_sparse, invalid_matrices_are_refused) {
  using matrix = small<double, std::int32_t>;
  const auto refused = [](const untax_csr& csr, const std::string& text, const char* way = nullptr,
                          std::int32_t threads = 0) {
    untax_spmv* product = nullptr;
    expect_failure(untax_spmv_make(&csr, way, threads, &product), untax_invalid_argument, {text});
    EXPECT_EQ(product, nullptr);
  };
  const auto changed = [](void (*change)(untax_csr&)) {
    static const matrix m;
    untax_csr csr = m.csr();
    change(csr);
    return csr;
  };
  refused(changed([](untax_csr& c) { c.offset_bits = 16; }), "offset_bits is 16");
  refused(changed([](untax_csr& c) { c.value_bits = 0; }), "value_bits is 0");
  refused(changed([](untax_csr& c) { c.elements = 3; }), "count 4 elements");
  refused(changed([](untax_csr& c) { c.elements = -1; }), "-1 elements");
  refused(changed([](untax_csr& c) { c.cols = 2; }), "column 2");
  refused(changed([](untax_csr& c) { c.rows = -1; }), "-1");
  refused(changed([](untax_csr& c) { c.rows = -9; }), "-8 elements");
  refused(changed([](untax_csr& c) { c.values = nullptr; }), "values is NULL");
  refused(changed([](untax_csr& c) { c.size = 0; }), "size of untax_csr is 0");
  refused(matrix{}.csr(), "there is no way 'csr_magic'; there are csr_thread", "csr_magic");
  refused(matrix{}.csr(), "1025", nullptr, 1025);
  EXPECT_EQ(untax_spmv_way(-1), nullptr);
  EXPECT_OK(untax_spmv_destroy(nullptr));
}

}  // namespace
