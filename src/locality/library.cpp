#include <untax/locality/library.hpp>

#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/text_file.hpp"

namespace untax::locality {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

const std::string& built_in(const std::vector<named_text>& texts, const char* what,
                            const std::string& name) {
  std::string names;
  for (const named_text& text : texts) {
    if (text.name == name) return text.text;
    names += (names.empty() ? "" : ", ") + text.name;
  }
  throw error(errc::invalid_argument,
              fmt::format("there is no {} \"{}\"; there are {}, or give the path of a file", what,
                          name, names));
}

bool is_path(const std::string& name) { return name.find_first_of("./") != std::string::npos; }

}  // namespace

device device_named(const std::string& name) {
  if (is_path(name)) return read_device(text_of_file(name, {.bytes = most_bytes}), name);
  const std::vector<named_text> texts = built_in_devices();
  return read_device(built_in(texts, "device", name), name);
}

kernel kernel_named(const std::string& name, const kernel::sizes& given, int line) {
  if (is_path(name))
    return kernel::read(text_of_file(name, {.bytes = most_bytes}), name, given, line);
  return kernel::read(kernel_text(name), name, given, line);
}

std::string kernel_text(const std::string& name) {
  std::vector<named_text> texts = built_in_kernels();
  for (named_text& text : swizzleperf_kernels()) texts.push_back(std::move(text));
  return built_in(texts, "kernel", name);
}

}  // namespace untax::locality
