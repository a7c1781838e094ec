#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "decoder/weight_source.hpp"

namespace untax {

/// A file descriptor that is closed in the end.
class open_file {
 public:
  /// Opens a regular file for reading. Throws `invalid_argument`.
  explicit open_file(const std::filesystem::path& path);
  open_file(open_file&& other) noexcept;
  open_file& operator=(open_file&&) = delete;
  ~open_file();

  /// Reads exactly `bytes` bytes. Throws `invalid_argument` if the file ends before.
  void read(void* to, std::uint64_t bytes, std::uint64_t at) const;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

/// The tensors of a folder's model.safetensors, or of its model-*.safetensors: 8 bytes with the
/// length of a JSON header, the header with type, shape and place of each tensor, the tensors. Only
/// what is asked for is read. Tensors of other types than fp32, fp16 and bf16, or of more than two
/// dimensions, are refused when they are asked for.
class safetensors_folder : public weight_source {
 public:
  /// Throws `invalid_argument`, with file and tensor, for a folder without such files, for headers
  /// that are not right, and for tensors that are in two files or outside theirs.
  explicit safetensors_folder(const std::filesystem::path& folder);

  [[nodiscard]] std::optional<shape> find(const std::string& name) const override;
  void read(const std::string& name, const index_range& rows, const index_range& cols,
            const matrix& to) override;

 private:
  struct tensor {
    std::size_t file = 0;
    std::string type;
    std::vector<std::int64_t> sizes;
    std::uint64_t begin = 0;  ///< in the file
  };
  void add(const std::filesystem::path& path);
  [[nodiscard]] const tensor& known(const std::string& name) const;
  [[nodiscard]] shape shape_of(const std::string& name, const tensor& t) const;

  std::vector<open_file> files_;
  std::map<std::string, tensor> tensors_;
};

}  // namespace untax
