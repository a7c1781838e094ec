#include "decoder/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "decoder/convert.hpp"
#include "src/core/json.hpp"

namespace untax {
namespace {

// Real headers have a few megabytes at most; the format's own limit.
constexpr std::uint64_t longest_header = 100'000'000;
static_assert(std::endian::native == std::endian::little);

[[noreturn]] void refuse(const std::string& where, const std::string& text) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", where, text));
}

std::string tensor_text(const std::string& name) {
  return control_character_in(name).empty() ? name.substr(0, 200) : "a tensor";
}

/// Bytes of an element of a type of the format; 0 for types that untax does not read.
std::uint64_t element_bytes(const std::string& type) {
  return type == "F32" ? 4 : type == "F16" || type == "BF16" ? 2 : 0;
}

dtype type_of(const std::string& type) {
  return type == "F32" ? dtype::f32 : type == "F16" ? dtype::f16 : dtype::bf16;
}

/// A list of whole numbers that are not negative.
std::vector<std::int64_t> numbers(const nlohmann::json& entry, const char* key,
                                  const std::string& where) {
  const auto list = entry.find(key);
  const auto natural = [](const nlohmann::json& n) {
    return n.is_number_unsigned() && n.get<std::uint64_t>() < std::uint64_t{1} << 60;
  };
  if (list == entry.end() || !list->is_array() || !std::ranges::all_of(*list, natural)) {
    refuse(where, fmt::format("{} should be a list of whole numbers", key));
  }
  return list->get<std::vector<std::int64_t>>();
}

struct file_header {
  nlohmann::json entries;
  std::uint64_t end = 0;  ///< where the tensors begin
};

file_header header_of(const open_file& file) {
  std::uint64_t length = 0;
  if (file.bytes() < sizeof length) refuse(file.path(), "is too short for a safetensors file");
  file.read(&length, sizeof length, 0);
  if (length > longest_header || length > file.bytes() - sizeof length) {
    refuse(file.path(),
           fmt::format("its header would have {} bytes; is it a safetensors file?", length));
  }
  std::string text(length, ' ');
  file.read(text.data(), length, sizeof length);
  file_header header{.entries = parse_json(text, file.path(),
                                           {.bytes = longest_header, .control_characters = true}),
                     .end = sizeof length + length};
  if (!header.entries.is_object()) refuse(file.path(), "its header should be an object");
  return header;
}

}  // namespace

safetensors_folder::safetensors_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name == "model.safetensors") {
      paths = {entry.path()};
      break;
    }
    if (name.starts_with("model-") && name.ends_with(".safetensors")) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    refuse(folder.string(), "has neither model.safetensors nor model-*.safetensors");
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) add(path);
}

void safetensors_folder::add(const std::filesystem::path& path) {
  const open_file& file = files_.emplace_back(path);
  const file_header header = header_of(file);
  for (const auto& [name, entry] : header.entries.items()) {
    if (name == "__metadata__") continue;
    const std::string where = fmt::format("{}: {}", file.path(), tensor_text(name));
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) {
      refuse(where, "should be an object with dtype, shape and data_offsets");
    }
    tensor parsed{.file = files_.size() - 1,
                  .type = entry["dtype"].get<std::string>(),
                  .sizes = numbers(entry, "shape", where),
                  .begin = 0};
    const auto offsets = numbers(entry, "data_offsets", where);
    if (offsets.size() != 2 || offsets[0] > offsets[1] ||
        static_cast<std::uint64_t>(offsets[1]) > file.bytes() - header.end) {
      refuse(where, "its data are not in the file");
    }
    std::uint64_t bytes = element_bytes(parsed.type);
    for (const std::int64_t size : parsed.sizes) {
      if (size > 0 && bytes > (std::uint64_t{1} << 60) / static_cast<std::uint64_t>(size)) {
        refuse(where, "is larger than any file");
      }
      bytes *= static_cast<std::uint64_t>(size);
    }
    if (element_bytes(parsed.type) > 0 &&
        bytes != static_cast<std::uint64_t>(offsets[1] - offsets[0])) {
      refuse(where, fmt::format("has {} bytes in the file, but its shape has {}",
                                offsets[1] - offsets[0], bytes));
    }
    parsed.begin = header.end + static_cast<std::uint64_t>(offsets[0]);
    if (!tensors_.emplace(name, std::move(parsed)).second) refuse(where, "is in another file, too");
  }
}

const safetensors_folder::tensor& safetensors_folder::known(const std::string& name) const {
  const auto entry = tensors_.find(name);
  if (entry == tensors_.end()) {
    refuse(files_.front().path(), fmt::format("there is no tensor {}", name));
  }
  return entry->second;
}

weight_source::shape safetensors_folder::shape_of(const std::string& name, const tensor& t) const {
  const std::string where = fmt::format("{}: {}", files_[t.file].path(), name);
  if (element_bytes(t.type) == 0) {
    refuse(where, "its dtype should be F32, F16 or BF16; quantised weights are not read");
  }
  if (t.sizes.size() == 1) return {.rows = 1, .cols = t.sizes[0]};
  if (t.sizes.size() != 2) refuse(where, fmt::format("has {} dimensions", t.sizes.size()));
  return {.rows = t.sizes[0], .cols = t.sizes[1]};
}

std::optional<weight_source::shape> safetensors_folder::find(const std::string& name) const {
  const auto entry = tensors_.find(name);
  if (entry == tensors_.end()) return std::nullopt;
  return shape_of(name, entry->second);
}

void safetensors_folder::read(const std::string& name, const index_range& rows,
                              const index_range& cols, const matrix& to) {
  const tensor& t = known(name);
  const std::uint64_t size = element_bytes(t.type);
  const auto width = static_cast<std::uint64_t>(shape_of(name, t).cols);
  std::vector<std::byte> row(static_cast<std::size_t>(cols.size()) * size);
  for (std::int64_t r = 0; r < rows.size(); ++r) {
    const auto first =
        static_cast<std::uint64_t>(rows.begin + r) * width + static_cast<std::uint64_t>(cols.begin);
    files_[t.file].read(row.data(), row.size(), t.begin + first * size);
    auto* target = static_cast<std::byte*>(to.data) +
                   static_cast<std::size_t>(r * to.stride) * size_of(to.type);
    convert_elements(row.data(), type_of(t.type), target, to.type, cols.size());
  }
}

}  // namespace untax
