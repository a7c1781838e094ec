#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "raise.hpp"
#include "views.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

/// Columns in the library's 32 bits: in place, or copied into `narrowed` from 64 bits.
const std::int32_t* columns_of(const read_array& given, std::vector<std::int32_t>& narrowed) {
  if (given.dtype() == nb::dtype<std::int32_t>())
    return static_cast<const std::int32_t*>(given.data());
  if (given.dtype() != nb::dtype<std::int64_t>()) refuse("columns have to be int32 or int64");
  const auto* wide = static_cast<const std::int64_t*>(given.data());
  narrowed.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (wide[i] < 0 || wide[i] > std::numeric_limits<std::int32_t>::max())
      refuse("element " + std::to_string(i) + " is in column " + std::to_string(wide[i]));
    narrowed.push_back(static_cast<std::int32_t>(wide[i]));
  }
  return narrowed.data();
}

/// 32 or 64, for arrays of `Narrow` or of `Wide`.
template <class Narrow, class Wide>
std::int32_t bits_of(const char* name, const char* types, const read_array& given) {
  if (given.dtype() == nb::dtype<Narrow>()) return 32;
  if (given.dtype() == nb::dtype<Wide>()) return 64;
  refuse(std::string(name) + " have to be " + types);
}

/// Owns a product of the C ABI, and keeps the arrays that it reads.
class product {
 public:
  product(const std::tuple<nb::object, nb::object, nb::object>& arrays,
          const std::tuple<std::int64_t, std::int64_t>& shape, const std::string& way,
          std::int32_t threads) {
    open_vector("offsets", std::get<0>(arrays), offsets_);
    open_vector("columns", std::get<1>(arrays), columns_);
    open_vector("values", std::get<2>(arrays), values_);
    untax_csr m{};
    m.size = sizeof m;
    std::tie(m.rows, m.cols) = shape;
    if (static_cast<std::int64_t>(offsets_.size()) != m.rows + 1) {
      refuse("there are " + std::to_string(offsets_.size()) + " offsets for " +
             std::to_string(m.rows) + " rows; there has to be one more than rows");
    }
    if (columns_.size() != values_.size()) {
      refuse("there are " + std::to_string(columns_.size()) + " columns and " +
             std::to_string(values_.size()) + " values");
    }
    m.elements = static_cast<std::int64_t>(values_.size());
    m.offset_bits = bits_of<std::int32_t, std::int64_t>("offsets", "int32 or int64", offsets_);
    m.value_bits = bits_of<float, double>("values", "float32 or float64", values_);
    m.offsets = offsets_.data();
    m.columns = columns_of(columns_, narrowed_);
    m.values = values_.data();
    checked([&] { return untax_spmv_make(&m, way.c_str(), threads, &handle_); });
  }
  product(const product&) = delete;
  product& operator=(const product&) = delete;
  ~product() { untax_spmv_destroy(handle_); }

  [[nodiscard]] double setup_seconds() const { return untax_spmv_setup_seconds(handle_); }

  void run(double alpha, nb::handle x, double beta, nb::handle y) {
    read_array from;
    written_array to;
    open_vector("x", x, from);
    open_vector("out", y, to);
    if (from.dtype() != values_.dtype() || to.dtype() != values_.dtype())
      refuse("elements of x and out have to be of the type that the matrix has");
    checked([&] {
      const std::lock_guard one_at_a_time(running_);
      return untax_spmv_run(handle_, alpha, from.data(), static_cast<std::int64_t>(from.size()),
                            beta, to.data(), static_cast<std::int64_t>(to.size()));
    });
  }

 private:
  read_array offsets_;
  read_array columns_;
  read_array values_;
  std::vector<std::int32_t> narrowed_;
  std::mutex running_;
  untax_spmv* handle_ = nullptr;
};

std::vector<std::string> ways() {
  std::vector<std::string> names;
  for (std::int32_t i = 0; untax_spmv_way(i) != nullptr; ++i) names.emplace_back(untax_spmv_way(i));
  return names;
}

}  // namespace

void bind_sparse(nb::module_& m) {
  using arrays = std::tuple<nb::object, nb::object, nb::object>;
  using shape = std::tuple<std::int64_t, std::int64_t>;
  nb::class_<product>(m, "Spmv")
      .def(nb::init<const arrays&, const shape&, const std::string&, std::int32_t>())
      .def_prop_ro("setup_seconds", &product::setup_seconds)
      .def("run", &product::run);
  m.def("spmv_ways", ways);
}

}  // namespace untax::python
