#pragma once

#include <string>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// The device of a built-in name, or of the file at a path that ends in ".json". Throws
/// `invalid_argument`.
[[nodiscard]] device device_named(const std::string& name);

/// The kernel of a built-in name, or of the file at a path that has a "." or a "/". `given` and
/// `line` are as in `kernel::read`. Throws `invalid_argument`.
[[nodiscard]] kernel kernel_named(const std::string& name, const kernel::sizes& given,
                                  int line = 128);

/// The text of a built-in kernel. Throws `invalid_argument` that lists the names.
[[nodiscard]] std::string kernel_text(const std::string& name);

}  // namespace untax::locality
