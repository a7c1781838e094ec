#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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
  return std::make_unique<planned>(std::make_shared<open_operator>(w.shared(), op), runs_of(name),
                                   w.on_gpu());
}

using extents = std::tuple<std::int64_t, std::int64_t, std::int32_t>;

extents operand(const planned& p, const std::string& name) {
  extents e{};
  auto& [rows, cols, type] = e;
  untax_operator* const op = p.open();
  checked([&] { return untax_operator_operand(op, name.c_str(), &rows, &cols, &type); });
  return e;
}

void* stream_at(std::uintptr_t stream) { return reinterpret_cast<void*>(stream); }

void run_gemm(const planned& p, nb::handle a, nb::handle weights, nb::handle c,
              std::uintptr_t stream) {
  if (p.runs().gemm == nullptr)
    refuse(std::string(untax_operator_kind(p.open())) + " multiplies nothing");
  read_array a_keeper;
  read_array weights_keeper;
  written_array c_keeper;
  const auto in = matrix_of("a", a, p.on_gpu(), a_keeper);
  const auto factor = matrix_of("weights", weights, p.on_gpu(), weights_keeper);
  untax_matrix out{};
  if (!c.is_none()) out = matrix_of("out", c, p.on_gpu(), c_keeper);
  const untax_matrix* const result = c.is_none() ? nullptr : &out;
  void* const on = stream_at(stream);
  p.run(on, [&](untax_operator* op) { return p.runs().gemm(op, &in, &factor, result, on); });
}

void run_collective(const planned& p, nb::handle in, nb::handle out, std::uintptr_t stream) {
  if (p.runs().collective == nullptr)
    refuse(std::string(untax_operator_kind(p.open())) + " is no collective");
  read_array in_keeper;
  written_array out_keeper;
  untax_const_array from{};
  if (!in.is_none()) from = array_of("a", in, p.on_gpu(), in_keeper);
  const auto to = array_of("out", out, p.on_gpu(), out_keeper);
  const untax_const_array* const given = in.is_none() ? nullptr : &from;
  void* const on = stream_at(stream);
  p.run(on, [&](untax_operator* op) { return p.runs().collective(op, given, &to, on); });
}

void run_decode(const planned& p, nb::handle q, nb::handle keys, nb::handle values,
                nb::handle lengths, nb::handle page_table, nb::handle out,
                std::tuple<std::int64_t, std::int64_t> numbers, std::uintptr_t stream) {
  read_array keepers[5];
  written_array out_keeper;
  const bool gpu = p.on_gpu();
  const auto in = matrix_of("q", q, gpu, keepers[0]);
  const auto k = matrix_of("keys", keys, gpu, keepers[1]);
  const auto v = matrix_of("values", values, gpu, keepers[2]);
  const auto* n = numbers_of("lengths", lengths, std::get<0>(numbers), gpu, keepers[3]);
  const auto* t = numbers_of("page_table", page_table, std::get<1>(numbers), gpu, keepers[4]);
  const auto to = matrix_of("out", out, gpu, out_keeper);
  void* const on = stream_at(stream);
  p.run(on,
        [&](untax_operator* op) { return untax_flash_decode_run(op, &in, &k, &v, n, t, &to, on); });
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
  void* const on = stream_at(stream);
  p.run(on, [&](untax_operator* op) {
    return untax_operator_run(op, operands.data(), static_cast<std::int32_t>(operands.size()), on);
  });
}

/// `begins` are those of queries and of keys, and how many numbers each of them has; `log_sums` is
/// an address, or 0.
void run_attention(const planned& p, nb::handle q, nb::handle keys, nb::handle values,
                   nb::handle out, std::tuple<nb::object, nb::object, std::int64_t> begins,
                   std::uintptr_t log_sums, std::uintptr_t stream) {
  read_array keepers[5];
  written_array out_keeper;
  const bool gpu = p.on_gpu();
  const auto& [of_queries, of_keys, count] = begins;
  const auto in = matrix_of("q", q, gpu, keepers[0]);
  const auto k = matrix_of("keys", keys, gpu, keepers[1]);
  const auto v = matrix_of("values", values, gpu, keepers[2]);
  const auto to = matrix_of("out", out, gpu, out_keeper);
  untax_attention_arguments a{};
  a.size = sizeof a;
  a.q = &in;
  a.keys = &k;
  a.values = &v;
  a.out = &to;
  a.log_sums = reinterpret_cast<float*>(log_sums);
  a.query_begins = numbers_of("query_begins", of_queries, count, gpu, keepers[3]);
  a.key_begins = numbers_of("key_begins", of_keys, count, gpu, keepers[4]);
  void* const on = stream_at(stream);
  p.run(on, [&](untax_operator* op) { return untax_flash_attention_run(op, &a, on); });
}

/// Refuses what has other sizes or another type than the operand that it is passed for; `of_run`
/// are the rows of this run, where it has some.
void require_operand(const planned& p, const char* name, const extents& given,
                     std::optional<std::int64_t> of_run = {}) {
  const auto [planned_rows, cols, type] = operand(p, name);
  const std::int64_t rows = of_run.value_or(planned_rows);
  if (given == extents{rows, cols, type}) return;
  refuse(std::string(name) + " is " + std::to_string(std::get<0>(given)) + " x " +
         std::to_string(std::get<1>(given)) + " of type " + std::to_string(std::get<2>(given)) +
         "; this problem needs " + std::to_string(rows) + " x " + std::to_string(cols) +
         " of type " + std::to_string(type));
}

/// `out` and `scales` are addresses, since their elements are not those of matrices.
void run_norm(const planned& p, nb::handle in, nb::handle residual, nb::handle weight, nb::handle x,
              std::tuple<std::uintptr_t, std::uintptr_t, float> out, std::uintptr_t stream) {
  read_array keepers[3];
  written_array x_keeper;
  const bool gpu = p.on_gpu();
  const auto part = matrix_of("in", in, gpu, keepers[0]);
  const auto more = matrix_of("residual", residual, gpu, keepers[1]);
  const auto factor = array_of("weight", weight, gpu, keepers[2]);
  const auto sum = matrix_of("x", x, gpu, x_keeper);
  require_operand(p, "weight", {1, factor.count, factor.type});
  require_operand(p, "x", {sum.rows, sum.cols, sum.type}, part.rows);
  if (sum.rows > 1 && sum.stride != 0 && sum.stride != sum.cols)
    refuse("rows of x have to follow each other without gaps");
  untax_norm_arguments a{};
  a.size = sizeof a;
  a.in = &part;
  a.residual = &more;
  a.weight = factor.data;
  a.x = sum.data;
  a.out = reinterpret_cast<void*>(std::get<0>(out));
  a.scales = reinterpret_cast<float*>(std::get<1>(out));
  a.scale = std::get<2>(out);
  void* const on = stream_at(stream);
  p.run(on, [&](untax_operator* op) { return untax_all_reduce_norm_run(op, &a, on); });
}

std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int32_t> result(const planned& p) {
  untax_matrix c{};
  untax_operator* const op = p.open();
  if (p.runs().result == nullptr)
    refuse(std::string(untax_operator_kind(p.open())) + " has no C of its own");
  checked([&] { return p.runs().result(op, &c); });
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
  m.def("operator_names", operator_names);
  m.def("version", untax_version);
  m.def("fields", fields_of);
  m.def("shapes", shapes_of);
  // An operator without its world would be closed.
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
  // Worlds and operators that are left when the interpreter ends are those that programs keep.
  nanobind::set_leak_warnings(false);
  untax::python::bind_world(m);
  untax::python::bind_operator(m);
  untax::python::bind_known_calls(m);
  untax::python::bind_trace(m);
  untax::python::bind_sparse(m);
  untax::python::bind_select(m);
}
