#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "raise.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

void start_trace(const std::string& path) {
  checked([&] { return untax_trace_start(path.c_str()); });
}

/// The number of recorded events, and of events that did not fit.
std::tuple<std::int64_t, std::int64_t> stop_trace() {
  std::int64_t events = 0;
  std::int64_t lost = 0;
  checked([&] { return untax_trace_stop(&events, &lost); });
  return {events, lost};
}

}  // namespace

void bind_trace(nb::module_& m) {
  m.def("start_trace", start_trace);
  m.def("stop_trace", stop_trace);
}

}  // namespace untax::python
