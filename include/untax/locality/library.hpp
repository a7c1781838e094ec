#pragma once

#include <string>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// The device with a name that is built in, or in the file at a path that ends in ".json". Throws
/// `invalid_argument`.
[[nodiscard]] device device_named(const std::string& name);

/// The kernel with a name that is built in, or in the file at a path that has a "." or a "/".
[[nodiscard]] kernel kernel_named(const std::string& name, const kernel::sizes& given,
                                  int line = 128);

/// The text of a built-in kernel. Throws `invalid_argument` that lists the names.
[[nodiscard]] std::string kernel_text(const std::string& name);

}  // namespace untax::locality
