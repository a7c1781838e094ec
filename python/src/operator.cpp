#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "planned.hpp"
#include "plans.hpp"
#include "raise.hpp"
#include "views.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

std::unique_ptr<planned> plan(const world& w, const std::string& name, const nb::dict& settings) {
  untax_operator* const op = plan_operator(w.open(), name, settings);
  return std::make_unique<planned>(std::make_shared<open_operator>(w.shared(), op), w.on_gpu());
}

using extents = std::tuple<std::int64_t, std::int64_t, std::int32_t>;

extents operand(const planned& p, const std::string& name) {
  extents e{};
  auto& [rows, cols, type] = e;
  untax_operator* const op = p.open();
  checked([&] { return untax_operator_operand(op, name.c_str(), &rows, &cols, &type); });
  return e;
}

/// An operand of the planned shape at an address; without data for 0.
untax_operand operand_at(const planned& p, const char* name, std::uintptr_t address) {
  const auto [rows, cols, type] = operand(p, name);
  return {name, reinterpret_cast<void*>(address), rows, cols, 0, type};
}

void run(const planned& p, std::span<const untax_operand> operands, std::uintptr_t stream) {
  p.run(reinterpret_cast<void*>(stream), operands);
}

void run_gemm(const planned& p, nb::handle a, nb::handle weights, nb::handle c,
              std::uintptr_t stream) {
  read_array keepers[2];
  written_array c_keeper;
  untax_operand operands[3] = {matrix_of("a", a, p.on_gpu(), keepers[0]),
                               matrix_of("weights", weights, p.on_gpu(), keepers[1])};
  if (!c.is_none()) operands[2] = matrix_of("c", c, p.on_gpu(), c_keeper, "out");
  run(p, {operands, c.is_none() ? std::size_t{2} : std::size_t{3}}, stream);
}

void run_collective(const planned& p, nb::handle in, nb::handle out, std::uintptr_t stream) {
  read_array in_keeper;
  written_array out_keeper;
  untax_operand operands[2] = {};
  if (!in.is_none()) operands[1] = array_of("in", in, p.on_gpu(), in_keeper, "a");
  operands[0] = array_of("out", out, p.on_gpu(), out_keeper);
  run(p, {operands, in.is_none() ? std::size_t{1} : std::size_t{2}}, stream);
}

void run_decode(const planned& p, nb::handle q, nb::handle keys, nb::handle values,
                nb::handle lengths, nb::handle page_table, nb::handle out,
                std::tuple<std::int64_t, std::int64_t> numbers, std::uintptr_t stream) {
  read_array keepers[5];
  written_array out_keeper;
  const bool gpu = p.on_gpu();
  const auto [batch, pages] = numbers;
  const untax_operand operands[] = {
      matrix_of("q", q, gpu, keepers[0]),
      matrix_of("keys", keys, gpu, keepers[1]),
      matrix_of("values", values, gpu, keepers[2]),
      numbers_of("lengths", lengths, 1, batch, gpu, keepers[3]),
      numbers_of("page_table", page_table, batch, pages, gpu, keepers[4]),
      matrix_of("out", out, gpu, out_keeper)};
  run(p, operands, stream);
}

/// A run with operands by their names: those that it reads, and those that it writes.
void run_named(const planned& p, const nb::dict& reads, const nb::dict& writes,
               std::uintptr_t stream) {
  std::deque<std::string> names;
  std::deque<read_array> read_keepers;
  std::deque<written_array> written_keepers;
  std::vector<untax_operand> operands;
  const bool gpu = p.on_gpu();
  for (const auto [key, value] : reads) {
    const std::string& name = names.emplace_back(nb::cast<std::string>(key));
    operands.push_back(operand_of(name.c_str(), value, gpu, read_keepers.emplace_back()));
  }
  for (const auto [key, value] : writes) {
    const std::string& name = names.emplace_back(nb::cast<std::string>(key));
    operands.push_back(operand_of(name.c_str(), value, gpu, written_keepers.emplace_back()));
  }
  run(p, operands, stream);
}

/// `begins` are those of queries and of keys, each with its length; `log_sums` is an address, or 0.
void run_attention(const planned& p, nb::handle q, nb::handle keys, nb::handle values,
                   nb::handle out, std::tuple<nb::object, nb::object, std::int64_t> begins,
                   std::uintptr_t log_sums, std::uintptr_t stream) {
  read_array keepers[5];
  written_array out_keeper;
  const bool gpu = p.on_gpu();
  const auto& [of_queries, of_keys, count] = begins;
  untax_operand sums = operand_at(p, "log_sums", log_sums);
  const untax_operand queries = matrix_of("q", q, gpu, keepers[0]);
  sums.rows = queries.rows;
  const untax_operand operands[] = {
      queries,
      matrix_of("keys", keys, gpu, keepers[1]),
      matrix_of("values", values, gpu, keepers[2]),
      matrix_of("out", out, gpu, out_keeper),
      sums,
      numbers_of("query_begins", of_queries, 1, count, gpu, keepers[3]),
      numbers_of("key_begins", of_keys, 1, count, gpu, keepers[4])};
  run(p, operands, stream);
}

/// `out` and `scales` are addresses, since their elements are not those of matrices.
void run_norm(const planned& p, nb::handle in, nb::handle residual, nb::handle weight, nb::handle x,
              std::tuple<std::uintptr_t, std::uintptr_t, float> out, std::uintptr_t stream) {
  read_array keepers[3];
  written_array x_keeper;
  const bool gpu = p.on_gpu();
  auto [rows_at, scales_at, scale] = out;
  if (scale == 0) scale = 1;
  const untax_operand part = matrix_of("in", in, gpu, keepers[0]);
  untax_operand normalised = operand_at(p, "out", rows_at);
  untax_operand scales = operand_at(p, "scales", scales_at);
  normalised.rows = scales.cols = part.rows;
  const untax_operand operands[] = {part,
                                    matrix_of("residual", residual, gpu, keepers[1]),
                                    array_of("weight", weight, gpu, keepers[2]),
                                    matrix_of("x", x, gpu, x_keeper),
                                    normalised,
                                    scales,
                                    {"scale", &scale, 1, 1, 0, untax_f32}};
  run(p, operands, stream);
}

std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int32_t> result(const planned& p) {
  untax_matrix c{};
  untax_operator* const op = p.open();
  checked([&] { return untax_operator_result(op, &c); });
  return {reinterpret_cast<std::uintptr_t>(c.data), c.rows, c.cols, c.type};
}

unsigned long main_thread = 0;

/// Called by waits: runs the handlers of pending signals, on Python's main thread. The exception of
/// a handler is raised when the call returns.
int interrupted() {
  if (PyThread_get_thread_ident() != main_thread) return 0;
  const nb::gil_scoped_acquire own;
  return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0 ? 1 : 0;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (std::int32_t i = 0; untax_operator_name(i) != nullptr; ++i)
    names.emplace_back(untax_operator_name(i));
  return names;
}

}  // namespace

void bind_operator(nb::module_& m) {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  untax_set_interrupt(interrupted);
  m.def("offer_openblas",
        [](const std::string& path) { raise_if_failed(untax_offer_openblas(path.c_str())); });
  m.def("operator_names", operator_names);
  m.def("version", untax_version);
  m.def("fields", fields_of);
  m.def("shapes", shapes_of);
  // The operator keeps its world alive: without the world it would be closed.
  m.def("plan", plan, nb::keep_alive<0, 1>());
  nb::class_<view_pin>(m, "Pin");
  nb::class_<planned>(m, "Operator")
      .def_prop_ro("kind", [](const planned& p) { return untax_operator_kind(p.open()); })
      .def_prop_ro("pattern", [](const planned& p) { return untax_operator_pattern(p.open()); })
      .def_prop_ro("closed", &planned::closed)
      .def("explain", [](const planned& p) { return untax_operator_explain(p.open()); })
      .def("operand", operand)
      .def("close", &planned::close)
      .def_prop_ro("captured", &planned::captured)
      .def("release_captured", &planned::release_captured)
      .def("pin", &planned::pin)
      .def("result", result)
      .def("run_gemm", run_gemm, nb::arg("a"), nb::arg("weights"), nb::arg("c").none(),
           nb::arg("stream"))
      .def("run_collective", run_collective, nb::arg("a").none(), nb::arg("out"), nb::arg("stream"))
      .def("run_norm", run_norm, nb::arg("a"), nb::arg("residual"), nb::arg("weight"), nb::arg("x"),
           nb::arg("out"), nb::arg("stream"))
      .def("run_attention", run_attention, nb::arg("q"), nb::arg("keys"), nb::arg("values"),
           nb::arg("out"), nb::arg("begins"), nb::arg("log_sums"), nb::arg("stream"))
      .def("run_decode", run_decode, nb::arg("q"), nb::arg("keys"), nb::arg("values"),
           nb::arg("lengths").none(), nb::arg("page_table").none(), nb::arg("out"),
           nb::arg("numbers"), nb::arg("stream"))
      .def("run", run_named, nb::arg("reads"), nb::arg("writes"), nb::arg("stream"));
}

}  // namespace untax::python

NB_MODULE(_core, m) {
  m.doc() = "The C ABI of untax, as the package untax uses it.";
  // No leak warnings: worlds and operators that are left when the interpreter ends are those that
  // programs keep.
  nanobind::set_leak_warnings(false);
  untax::python::bind_world(m);
  untax::python::bind_operator(m);
  untax::python::bind_known_calls(m);
  untax::python::bind_trace(m);
  untax::python::bind_sparse(m);
  untax::python::bind_select(m);
  untax::python::bind_decoder(m);
}
