#include "exchange.hpp"

#include <cstdint>
#include <unordered_map>

namespace untax::python {
namespace {

/// The used part of DLManagedTensorVersioned of dlpack.h.
struct managed_tensor {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*destroy)(managed_tensor* self);
  std::uint64_t flags;
};
constexpr std::uint64_t is_read_only = 1;

/// The used part of DLPackExchangeAPI of dlpack.h.
struct exchange_api {
  std::uint32_t major;
  std::uint32_t minor;
  const exchange_api* before;
  void* allocate;
  int (*managed_of)(void* object, managed_tensor** to);
  void* object_from_managed;
  int (*tensor_of)(void* object, nb::dlpack::dltensor* to);
  int (*stream_of)(std::int32_t kind, std::int32_t number, void** to);
};

/// The exchange API of a type; null if the type has no API that is known here. The answer for each
/// type is remembered, and the type kept alive.
const exchange_api* api_of(nb::handle object) {
  static auto& known = *new std::unordered_map<PyTypeObject*, const exchange_api*>;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  const auto [at, added] = known.try_emplace(type, nullptr);
  if (!added) return at->second;
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  const nb::object capsule = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)),
                                         "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_CheckExact(capsule.ptr()) == 0) return nullptr;
  const auto* api =
      static_cast<const exchange_api*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (api == nullptr) nb::raise_python_error();
  while (api != nullptr && api->major != 1) api = api->before;
  if (api != nullptr && api->tensor_of == nullptr) api = nullptr;
  return known[type] = api;
}

}  // namespace

bool read_tensor(nb::handle tensor, nb::dlpack::dltensor& to) {
  const exchange_api* const api = api_of(tensor);
  if (api == nullptr) return false;
  if (api->tensor_of(tensor.ptr(), &to) != 0) nb::raise_python_error();
  return true;
}

bool read_writable_tensor(nb::handle tensor, nb::dlpack::dltensor& to) {
  if (!read_tensor(tensor, to)) return false;
  managed_tensor* managed = nullptr;
  if (api_of(tensor)->managed_of(tensor.ptr(), &managed) != 0) nb::raise_python_error();
  const bool may_be_written = (managed->flags & is_read_only) == 0;
  if (managed->destroy != nullptr)
    managed->destroy(managed);  // DLPack allows a tensor without a
                                // destroy function
  return may_be_written;
}

void* current_stream(nb::handle tensor, const nb::dlpack::device& place) {
  void* stream = nullptr;
  if (api_of(tensor)->stream_of(place.device_type, place.device_id, &stream) != 0)
    nb::raise_python_error();
  return stream;
}

}  // namespace untax::python
