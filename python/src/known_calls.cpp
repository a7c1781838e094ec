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
constexpr std::uintptr_t alignment = 16;  // of memory that kernels read and write

/// An operand: address, rows, columns, elements from row to row, type.
using operand = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>;

/// The tensors of a call, operands before results. A call is known by their `form`: all properties
/// but the addresses.
struct call_tensors {
  nb::dlpack::device device{};
  std::array<std::uintptr_t, most_operands + most_results> addresses{};
  std::size_t count = 0;
  std::vector<std::int64_t> form;

  /// Reads operands, and the tensors for results from `into`: a tensor, a tuple of tensors, or
  /// None. Returns false if there are too many tensors, or if one cannot be read.
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
  /// Whether all tensors are aligned for kernels to access them in place.
  [[nodiscard]] bool aligned() const {
    return std::all_of(addresses.begin(), addresses.begin() + count,
                       [](std::uintptr_t address) { return address % alignment == 0; });
  }
};

/// A resolved call: its operator, operands, results and their shapes.
struct known_call {
  nb::object key;  ///< the arguments that are not tensors
  std::vector<std::int64_t> form;
  nb::object op;  ///< untax.Operator
  const planned* core;
  std::vector<std::string> names;  ///< the names of `operands`
  std::vector<operand> operands;   ///< the tensors of the call, then the results
  std::size_t results;             ///< the number of results
  nb::object shape;                ///< the shape of a result
  nb::object hand_out;             ///< copies a result from memory of the operator; None without it
  void* default_stream;
  std::uint64_t used;  ///< the clock at the last call

  [[nodiscard]] std::size_t inputs() const { return operands.size() - results; }
};

/// Resolved calls of an engine of untax.torch. A call is known by its other arguments and by
/// shapes, strides, types and devices of its tensors, if the operator read and wrote these tensors
/// in place, or allocated the results. The next such call reads addresses only, since most of a
/// call's time on the host goes into shapes and views.
class known_calls {
 public:
  /// Runs a known call, and returns its results: `into`, or new tensors if `into` is None. Returns
  /// None if the call is not known.
  nb::object again(const nb::tuple& key, nb::object into, const nb::args& arguments) {
    call_tensors tensors;
    if (!tensors.read(arguments, into)) return nb::none();
    const std::shared_ptr<known_call> call = find(key, tensors);
    if (!call) return nb::none();
    if (tensors.on_gpu() && !tensors.aligned()) return nb::none();
    if (into.is_none()) {
      into = new_results(*call, arguments[0], tensors);
      if (into.is_none()) return into;
    }
    void* stream = nullptr;
    if (tensors.on_gpu()) {
      stream = current_stream(arguments[0], tensors.device);
      if (stream == nullptr) stream = call->default_stream;
    }
    call->used = ++clock_;
    run(*call, tensors, stream);
    if (!call->hand_out.is_none()) call->hand_out(into, reinterpret_cast<std::uintptr_t>(stream));
    return into;
  }

  /// Records a call that ran `op` with `operands`, of which the last are the results. The call is
  /// not recorded if an operand is not at the address of its tensor, or a result not in `into`.
  /// `hand_out(result, stream)` is called after each run of an operator that leaves its result in
  /// its own memory, to copy it.
  void keep(const nb::tuple& key, nb::handle into, const nb::tuple& arguments, const nb::object& op,
            std::vector<std::string> names, std::vector<operand> operands, const nb::object& shape,
            std::uintptr_t default_stream, const nb::object& hand_out) {
    call_tensors tensors;
    if (!tensors.read(nb::borrow<nb::args>(arguments), into) ||
        operands.size() <= arguments.size() || operands.size() > arguments.size() + most_results ||
        names.size() != operands.size())
      return;
    for (std::size_t i = 0; i < tensors.count; ++i) {
      if (std::get<0>(operands[i]) != tensors.addresses[i]) return;
    }
    if (find(key, tensors)) return;
    const std::size_t results = operands.size() - arguments.size();
    calls_.emplace(hash_of(key, tensors.form),
                   std::make_shared<known_call>(
                       known_call{key, tensors.form, op, nb::cast<const planned*>(op.attr("_core")),
                                  std::move(names), std::move(operands), results, shape, hand_out,
                                  reinterpret_cast<void*>(default_stream), clock_}));
  }

  /// The number of a use of an operator; it is larger than the numbers of all earlier uses.
  std::uint64_t stamp() { return ++clock_; }
  /// The operators of known calls, each with the number of its last use.
  [[nodiscard]] std::vector<std::tuple<nb::object, std::uint64_t>> uses() const {
    std::vector<std::tuple<nb::object, std::uint64_t>> last_uses;
    for (const auto& [hash, call] : calls_) last_uses.emplace_back(call->op, call->used);
    return last_uses;
  }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  void clear() { calls_.clear(); }

 private:
  static std::size_t hash_of(const nb::tuple& key, const std::vector<std::int64_t>& form) {
    auto hash = static_cast<std::size_t>(nb::hash(key));
    for (const std::int64_t number : form)
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15U;
    return hash;
  }

  [[nodiscard]] std::shared_ptr<known_call> find(const nb::tuple& key,
                                                 const call_tensors& tensors) const {
    const auto [begin, end] = calls_.equal_range(hash_of(key, tensors.form));
    const auto at = std::find_if(begin, end, [&](const auto& entry) {
      return entry.second->form == tensors.form && entry.second->key.equal(key);
    });
    return at == end ? nullptr : at->second;
  }

  /// New results, alone or as a tuple, which are added to `tensors`; None if they cannot be read.
  static nb::object new_results(const known_call& call, nb::handle like, call_tensors& tensors) {
    nb::object results[most_results];
    for (std::size_t i = 0; i < call.results; ++i) {
      results[i] = like.attr("new_empty")(call.shape);
      if (!tensors.add(results[i])) return nb::none();
    }
    return call.results == 1 ? results[0] : nb::make_tuple(results[0], results[1]);
  }

  static void run(const known_call& call, const call_tensors& tensors, void* stream) {
    std::array<untax_operand, most_operands + most_results> operands;
    for (std::size_t i = 0; i < tensors.count; ++i) {
      const auto& [was, rows, cols, stride, type] = call.operands[i];
      operands[i] = {call.names[i].c_str(),
                     reinterpret_cast<void*>(tensors.addresses[i]),
                     rows,
                     cols,
                     stride,
                     type};
    }
    call.core->run(stream,
                   {operands.data(), call.hand_out.is_none() ? tensors.count : call.inputs()});
  }

  std::unordered_multimap<std::size_t, std::shared_ptr<known_call>> calls_;
  std::uint64_t clock_ = 0;
};

}  // namespace

void bind_known_calls(nb::module_& m) {
  nb::class_<known_calls>(m, "KnownCalls")
      .def(nb::init<>())
      .def("again", &known_calls::again, nb::arg("key"), nb::arg("into").none(), nb::arg("tensors"))
      .def("keep", &known_calls::keep, nb::arg("key"), nb::arg("into").none(), nb::arg("tensors"),
           nb::arg("op"), nb::arg("names"), nb::arg("operands"), nb::arg("shape"),
           nb::arg("default_stream"), nb::arg("hand_out").none())
      .def("stamp", &known_calls::stamp)
      .def("uses", &known_calls::uses)
      .def("clear", &known_calls::clear)
      .def("__len__", &known_calls::size);
}

}  // namespace untax::python
