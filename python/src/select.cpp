#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "raise.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

/// Owns a selector of the C ABI.
class selector {
 public:
  explicit selector(untax_selector* s) : handle_(s) {}
  selector(const selector&) = delete;
  selector& operator=(const selector&) = delete;
  ~selector() { untax_selector_destroy(handle_); }
  [[nodiscard]] untax_selector* handle() const noexcept { return handle_; }

 private:
  untax_selector* handle_;
};

std::unique_ptr<selector> train(const std::string& schema, const std::string& table,
                                std::uint64_t seed) {
  untax_selector* handle = nullptr;
  checked([&] { return untax_selector_train(schema.c_str(), table.c_str(), seed, &handle); });
  return std::make_unique<selector>(handle);
}

std::unique_ptr<selector> read(const std::string& json) {
  untax_selector* handle = nullptr;
  checked([&] { return untax_selector_read(json.c_str(), &handle); });
  return std::make_unique<selector>(handle);
}

/// The callable that gathers features, the number of features that it has to return, and its
/// exception.
struct gatherer {
  nb::callable call;
  std::size_t count = 0;
  std::exception_ptr thrown;
};

int gather(void* context, double* features) {
  auto& g = *static_cast<gatherer*>(context);
  try {
    const auto values = nb::cast<std::vector<double>>(g.call());
    if (values.size() != g.count)
      refuse("the number of gathered features is not that of the selector");
    std::ranges::copy(values, features);
    return 0;
  } catch (...) {
    g.thrown = std::current_exception();
    return 1;
  }
}

using names = std::vector<std::string>;

/// Names of the features that are known, and of those that are gathered.
std::tuple<names, names> features(const selector& s) {
  std::tuple<names, names> result;
  std::int32_t gathered = 0;
  for (std::int32_t i = 0; untax_selector_feature(s.handle(), i, &gathered) != nullptr; ++i) {
    auto& those = gathered == 0 ? std::get<0>(result) : std::get<1>(result);
    those.emplace_back(untax_selector_feature(s.handle(), i, nullptr));
  }
  return result;
}

/// Holds the interpreter's lock, which gathering needs; a choice takes almost no time.
std::tuple<std::string, bool> choose(const selector& s, const std::vector<double>& known,
                                     double iterations, nb::handle given) {
  gatherer g;
  if (!given.is_none()) g.call = nb::cast<nb::callable>(given);
  g.count = std::get<1>(features(s)).size();
  std::int32_t candidate = 0;
  std::int32_t gathered = 0;
  const std::int32_t status = untax_selector_choose(
      s.handle(), known.data(), static_cast<std::int32_t>(known.size()), iterations,
      given.is_none() ? nullptr : gather, &g, &candidate, &gathered);
  if (g.thrown) std::rethrow_exception(g.thrown);
  if (status != untax_ok) raise(status, untax_last_error().text, -1);
  return {untax_selector_candidate(s.handle(), candidate), gathered != 0};
}

}  // namespace

void bind_select(nb::module_& m) {
  nb::class_<selector>(m, "Selector")
      .def_prop_ro("json", [](const selector& s) { return untax_selector_json(s.handle()); })
      .def_prop_ro("text", [](const selector& s) { return untax_selector_text(s.handle()); })
      .def("features", features)
      .def("choose", choose, nb::arg(), nb::arg(), nb::arg().none());
  m.def("train_selector", train);
  m.def("read_selector", read);
}

}  // namespace untax::python
