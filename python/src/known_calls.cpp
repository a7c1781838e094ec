#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "planned.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

constexpr std::size_t most_tensors = 3;
constexpr std::uintptr_t alignment = 16;  // of what kernels read and write

/// As operands are passed: address, rows, columns, elements from row to row, type.
using operand = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>;

/// The tensors of a call, and what about them makes it another one: all but addresses.
struct given_tensors {
  std::array<nb::dlpack::dltensor, most_tensors> of;
  std::size_t count = 0;
  std::vector<std::int64_t> form;

  /// False if there are too many, or some that cannot be read here.
  bool read(const nb::args& tensors) {
    count = tensors.size();
    if (count == 0 || count > most_tensors) return false;
    for (std::size_t i = 0; i < count; ++i) {
      nb::dlpack::dltensor& t = of[i];
      if (!read_tensor(tensors[i], t)) return false;
      form.insert(form.end(),
                  {t.ndim, t.dtype.code, t.dtype.bits, t.device.device_type, t.device.device_id});
      form.insert(form.end(), t.shape, t.shape + t.ndim);
      form.insert(form.end(), t.strides, t.strides + t.ndim);
    }
    return true;
  }
  [[nodiscard]] bool on_gpu() const { return of[0].device.device_type == nb::device::cuda::value; }
};

std::uintptr_t address_of(const nb::dlpack::dltensor& t) {
  return reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
}

untax_const_matrix read_at(std::uintptr_t address, const operand& o) {
  const auto& [was, rows, cols, stride, type] = o;
  return {reinterpret_cast<const void*>(address), rows, cols, stride, type};
}

/// What a call was resolved to: its operator, operands and the shape of its result.
struct known_call {
  nb::object what;  ///< its other arguments
  std::vector<std::int64_t> form;
  nb::object op;  ///< untax.Operator
  const planned* core;
  std::vector<operand> operands;  ///< of the tensors, in their order; then of the result
  nb::object shape;               ///< of the result
  nb::object hand_out;            ///< of an operator that leaves its result in its own memory
  void* default_stream;
  std::uint64_t used;  ///< when it was called last
};

/// Calls of an engine of untax.torch. A call is known by its arguments and by shapes, strides,
/// types and devices of its tensors, if operands were taken where these lie and the result is a
/// tensor of its own. The next such call reads addresses, and nothing else: of what a call costs
/// the host, shapes and views are the most.
class known_calls {
 public:
  /// The result of such a call, which has run, or None if it is not known.
  nb::object again(const nb::tuple& what, const nb::args& tensors) {
    given_tensors given;
    if (!given.read(tensors)) return nb::none();
    const std::shared_ptr<known_call> call = find(what, given);
    if (!call) return nb::none();
    std::array<std::uintptr_t, most_tensors> addresses{};
    for (std::size_t i = 0; i < given.count; ++i) {
      addresses[i] = address_of(given.of[i]);
      if (given.on_gpu() && addresses[i] % alignment != 0) return nb::none();
    }
    nb::object made = tensors[0].attr("new_empty")(call->shape);
    nb::dlpack::dltensor result;
    if (!read_tensor(made, result)) return nb::none();
    void* stream = nullptr;
    if (given.on_gpu()) {
      stream = current_stream(tensors[0], given.of[0].device);
      if (stream == nullptr) stream = call->default_stream;
    }
    call->used = ++clock_;
    run(*call, addresses, address_of(result), stream);
    if (!call->hand_out.is_none()) call->hand_out(made, reinterpret_cast<std::uintptr_t>(stream));
    return made;
  }

  /// That a call ran `op` with these operands, of which the last is the result, unless one of the
  /// others does not lie where its tensor does. `hand_out(result, stream)`: called behind each run
  /// of an operator that leaves its result in its own memory, to copy it.
  void keep(const nb::tuple& what, const nb::tuple& tensors, const nb::object& op,
            std::vector<operand> operands, const nb::object& shape, std::uintptr_t default_stream,
            const nb::object& hand_out) {
    given_tensors given;
    if (!given.read(nb::borrow<nb::args>(tensors)) || operands.size() != given.count + 1) return;
    for (std::size_t i = 0; i < given.count; ++i) {
      if (std::get<0>(operands[i]) != address_of(given.of[i])) return;
    }
    if (find(what, given)) return;
    calls_.emplace(
        hash_of(what, given.form),
        std::make_shared<known_call>(known_call{
            what, given.form, op, nb::cast<const planned*>(op.attr("_core")), std::move(operands),
            shape, hand_out, reinterpret_cast<void*>(default_stream), clock_}));
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

  static void run(const known_call& call, const std::array<std::uintptr_t, most_tensors>& addresses,
                  std::uintptr_t result, void* stream) {
    const planned& p = *call.core;
    const auto& [was, rows, cols, stride, type] = call.operands.back();
    auto* const to = reinterpret_cast<void*>(result);
    if (p.entry().gemm != nullptr) {
      const untax_const_matrix a = read_at(addresses[0], call.operands[0]);
      const untax_const_matrix b = read_at(addresses[1], call.operands[1]);
      const untax_matrix c{to, rows, cols, stride, type};
      const untax_matrix* const into = call.hand_out.is_none() ? &c : nullptr;
      return p.run(stream,
                   [&](untax_operator* op) { return p.entry().gemm(op, &a, &b, into, stream); });
    }
    const untax_const_matrix in = read_at(addresses[0], call.operands[0]);
    const untax_const_array from{in.data, in.rows * in.cols, in.type};
    const untax_array out{to, rows * cols, type};
    p.run(stream,
          [&](untax_operator* op) { return p.entry().collective(op, &from, &out, stream); });
  }

  std::unordered_multimap<std::size_t, std::shared_ptr<known_call>> calls_;
  std::uint64_t clock_ = 0;
};

}  // namespace

void bind_known_calls(nb::module_& m) {
  nb::class_<known_calls>(m, "KnownCalls")
      .def(nb::init<>())
      .def("again", &known_calls::again, nb::arg("what"), nb::arg("tensors"))
      .def("keep", &known_calls::keep, nb::arg("what"), nb::arg("tensors"), nb::arg("op"),
           nb::arg("operands"), nb::arg("shape"), nb::arg("default_stream"),
           nb::arg("hand_out").none())
      .def("stamp", &known_calls::stamp)
      .def("uses", &known_calls::uses)
      .def("clear", &known_calls::clear)
      .def("__len__", &known_calls::size);
}

}  // namespace untax::python
