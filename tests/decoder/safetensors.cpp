#include "decoder/safetensors.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <untax/core/half.hpp>

#include "tests/errors.hpp"

namespace untax_test {
namespace {

using untax::bf16;
using untax::errc;
using untax::matrix;
using untax::safetensors_folder;

/// A folder with one file, removed in the end.
class files : public testing::Test {
 protected:
  files() {
    std::string name = testing::TempDir() + "untax-safetensors-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~files() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& header, const std::string& data,
             const std::string& name = "model.safetensors") {
    std::ofstream file(folder_ / name, std::ios::binary);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header << data;
  }
  void refuses(const std::string& text) {
    expect_error(error_of([&] { safetensors_folder read(folder_); }), errc::invalid_argument,
                 {text});
  }

  std::filesystem::path folder_;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), ' ');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(files, parts_of_tensors_are_read_and_converted) {
  write(R"({"__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
            "c": {"dtype": "I8", "shape": [1, 1], "data_offsets": [32, 33]}})",
        bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}) +
            bytes_of(std::vector{bf16(7), bf16(8), bf16(9), bf16(10)}) + "x");
  safetensors_folder read(folder_);
  EXPECT_FALSE(read.find("d"));
  EXPECT_EQ(read.find("a")->rows, 2);
  EXPECT_EQ(read.find("b")->cols, 4);
  std::vector<float> part(5);
  read.read("a", {0, 2}, {1, 3}, matrix(part.data(), 2, 2, 3));
  EXPECT_EQ(part, (std::vector<float>{2, 3, 0, 5, 6}));
  read.read("b", {0, 1}, {2, 4}, matrix(part.data(), 1, 2));
  EXPECT_EQ(part[0], 9);
  EXPECT_EQ(part[1], 10);
  std::vector<bf16> narrow(1);
  read.read("a", {1, 2}, {2, 3}, matrix(narrow.data(), 1, 1));
  EXPECT_EQ(static_cast<float>(narrow[0]), 6);
  expect_error(error_of([&] { (void)read.find("c"); }), errc::invalid_argument, {"c", "quantised"});
}

TEST_F(files, several_files_are_one_model) {
  const std::string value = bytes_of(std::vector<float>{1});
  write(R"({"a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})", value,
        "model-00001-of-00002.safetensors");
  write(R"({"b": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})", value,
        "model-00002-of-00002.safetensors");
  const safetensors_folder read(folder_);
  EXPECT_TRUE(read.find("a") && read.find("b"));
  write(R"({"a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})", value,
        "model-00002-of-00002.safetensors");
  refuses("another file");
}

TEST_F(files, damaged_files_are_refused) {
  refuses("neither");
  std::ofstream(folder_ / "model.safetensors") << "abc";
  refuses("too short");
  std::ofstream(folder_ / "model.safetensors") << "abcdefgh{}";
  refuses("its header would have");
  write("[1]", "");
  refuses("an object");
  write(R"({"a": 1})", "");
  refuses("data_offsets");
  write(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", "1234567");
  refuses("not in the file");
  write(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", "12345678");
  refuses("its shape has 12");
  write(R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}})", "12345678");
  refuses("whole numbers");
  write(
      R"({"a": {"dtype": "F32", "shape": [1000000000000, 1000000000000], "data_offsets": [0, 8]}})",
      "12345678");
  refuses("larger than any file");
}

}  // namespace
}  // namespace untax_test
