#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "planned.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

constexpr std::size_t most_operands = 3;
constexpr std::size_t most_results = 2;
constexpr std::uintptr_t alignment = 16;  // of what kernels read and write

/// As operands are passed: address, rows, columns, elements from row to row, type.
using operand = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>;

/// The tensors of a call, operands before results, and what about them makes it another one: all
/// but addresses.
struct given_tensors {
  nb::dlpack::device device{};
  std::array<std::uintptr_t, most_operands + most_results> addresses{};
  std::size_t count = 0;
  std::vector<std::int64_t> form;

  /// Reads operands, and `into`, which results are written to: a tensor, a tuple of tensors, or
  /// None. False if there are too many, or some that cannot be read here.
  bool read(const nb::args& operands, nb::handle into) {
    if (operands.size() == 0 || operands.size() > most_operands) return false;
    for (const nb::handle tensor : operands)
      if (!add(tensor)) return false;
    if (into.is_none()) return true;
    if (!nb::isinstance<nb::tuple>(into)) return add(into);
    const auto results = nb::borrow<nb::tuple>(into);
    if (results.size() > most_results) return false;
    for (const nb::handle tensor : results)
      if (!add(tensor)) return false;
    return true;
  }
  bool add(nb::handle tensor) {
    nb::dlpack::dltensor t;
    if (!read_tensor(tensor, t)) return false;
    if (count == 0) device = t.device;
    addresses[count++] = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
    form.insert(form.end(),
                {t.ndim, t.dtype.code, t.dtype.bits, t.device.device_type, t.device.device_id});
    form.insert(form.end(), t.shape, t.shape + t.ndim);
    form.insert(form.end(), t.strides, t.strides + t.ndim);
    return true;
  }
  [[nodiscard]] bool on_gpu() const { return device.device_type == nb::device::cuda::value; }
  /// Whether kernels can read and write all of them where they are.
  [[nodiscard]] bool aligned() const {
    return std::all_of(addresses.begin(), addresses.begin() + count,
                       [](std::uintptr_t address) { return address % alignment == 0; });
  }
};

/// A resolved call: its operator, operands, results and their shapes.
struct known_call {
  nb::object what;  ///< its other arguments
  std::vector<std::int64_t> form;
  nb::object op;  ///< untax.Operator
  const planned* core;
  std::vector<std::string> names;  ///< of operands, in the order of these
  std::vector<operand> operands;   ///< of the tensors, in their order; then of the results
  std::size_t results;             ///< how many of these
  nb::object shape;                ///< of a result
  nb::object hand_out;             ///< of an operator that leaves its result in its own memory
  void* default_stream;
  std::uint64_t used;  ///< when it was called last

  [[nodiscard]] std::size_t inputs() const { return operands.size() - results; }
};

/// Calls of an engine of untax.torch. A call is known by its arguments and by shapes, strides,
/// types and devices of its tensors, if operands were taken where these lie, and the results are
/// tensors of their own, or were written where those lie that were given for them. The next such
/// call reads addresses, and nothing else: of what a call costs the host, shapes and views are the
/// most.
class known_calls {
 public:
  /// Runs such a call, and returns its results, which are `into` unless that is None; or None if
  /// the call is not known.
  nb::object again(const nb::tuple& what, nb::object into, const nb::args& tensors) {
    given_tensors given;
    if (!given.read(tensors, into)) return nb::none();
    const std::shared_ptr<known_call> call = find(what, given);
    if (!call) return nb::none();
    if (given.on_gpu() && !given.aligned()) return nb::none();
    if (into.is_none()) {
      into = made(*call, tensors[0], given);
      if (into.is_none()) return into;
    }
    void* stream = nullptr;
    if (given.on_gpu()) {
      stream = current_stream(tensors[0], given.device);
      if (stream == nullptr) stream = call->default_stream;
    }
    call->used = ++clock_;
    run(*call, given, stream);
    if (!call->hand_out.is_none()) call->hand_out(into, reinterpret_cast<std::uintptr_t>(stream));
    return into;
  }

  /// That a call ran `op` with these operands, of which the last are the results, unless one of the
  /// others does not lie where its tensor does, or a result not where `into` does, if that is
  /// given. `hand_out(result, stream)`: called behind each run of an operator that leaves its
  /// result in its own memory, to copy it.
  void keep(const nb::tuple& what, nb::handle into, const nb::tuple& tensors, const nb::object& op,
            std::vector<std::string> names, std::vector<operand> operands, const nb::object& shape,
            std::uintptr_t default_stream, const nb::object& hand_out) {
    given_tensors given;
    if (!given.read(nb::borrow<nb::args>(tensors), into) || operands.size() <= tensors.size() ||
        operands.size() > tensors.size() + most_results || names.size() != operands.size())
      return;
    for (std::size_t i = 0; i < given.count; ++i) {
      if (std::get<0>(operands[i]) != given.addresses[i]) return;
    }
    if (find(what, given)) return;
    const std::size_t results = operands.size() - tensors.size();
    calls_.emplace(hash_of(what, given.form),
                   std::make_shared<known_call>(
                       known_call{what, given.form, op, nb::cast<const planned*>(op.attr("_core")),
                                  std::move(names), std::move(operands), results, shape, hand_out,
                                  reinterpret_cast<void*>(default_stream), clock_}));
  }

  /// The number of a use of an operator: larger than those of all uses before it.
  std::uint64_t stamp() { return ++clock_; }
  /// The operators of known calls, each with the number of its last use.
  [[nodiscard]] std::vector<std::tuple<nb::object, std::uint64_t>> uses() const {
    std::vector<std::tuple<nb::object, std::uint64_t>> all;
    for (const auto& [hash, call] : calls_) all.emplace_back(call->op, call->used);
    return all;
  }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  void clear() { calls_.clear(); }

 private:
  static std::size_t hash_of(const nb::tuple& what, const std::vector<std::int64_t>& form) {
    auto hash = static_cast<std::size_t>(nb::hash(what));
    for (const std::int64_t number : form)
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15U;
    return hash;
  }

  [[nodiscard]] std::shared_ptr<known_call> find(const nb::tuple& what,
                                                 const given_tensors& given) const {
    const auto [begin, end] = calls_.equal_range(hash_of(what, given.form));
    const auto at = std::find_if(begin, end, [&](const auto& entry) {
      return entry.second->form == given.form && entry.second->what.equal(what);
    });
    return at == end ? nullptr : at->second;
  }

  /// New results, alone or as a tuple, which are read into `given`; None if they cannot be.
  static nb::object made(const known_call& call, nb::handle like, given_tensors& given) {
    nb::object results[most_results];
    for (std::size_t i = 0; i < call.results; ++i) {
      results[i] = like.attr("new_empty")(call.shape);
      if (!given.add(results[i])) return nb::none();
    }
    return call.results == 1 ? results[0] : nb::make_tuple(results[0], results[1]);
  }

  static void run(const known_call& call, const given_tensors& given, void* stream) {
    std::array<untax_operand, most_operands + most_results> operands;
    for (std::size_t i = 0; i < given.count; ++i) {
      const auto& [was, rows, cols, stride, type] = call.operands[i];
      operands[i] = {call.names[i].c_str(),
                     reinterpret_cast<void*>(given.addresses[i]),
                     rows,
                     cols,
                     stride,
                     type};
    }
    call.core->run(stream,
                   {operands.data(), call.hand_out.is_none() ? given.count : call.inputs()});
  }

  std::unordered_multimap<std::size_t, std::shared_ptr<known_call>> calls_;
  std::uint64_t clock_ = 0;
};

}  // namespace

void bind_known_calls(nb::module_& m) {
  nb::class_<known_calls>(m, "KnownCalls")
      .def(nb::init<>())
      .def("again", &known_calls::again, nb::arg("what"), nb::arg("into").none(),
           nb::arg("tensors"))
      .def("keep", &known_calls::keep, nb::arg("what"), nb::arg("into").none(), nb::arg("tensors"),
           nb::arg("op"), nb::arg("names"), nb::arg("operands"), nb::arg("shape"),
           nb::arg("default_stream"), nb::arg("hand_out").none())
      .def("stamp", &known_calls::stamp)
      .def("uses", &known_calls::uses)
      .def("clear", &known_calls::clear)
      .def("__len__", &known_calls::size);
}

}  // namespace untax::python
