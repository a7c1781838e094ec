// Compressed tables and matrices are unpacked up to limits; damaged ones are refused.
#include "src/select/packed_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace untax {
namespace {

using untax_test::error_of;

constexpr file_limits wide{.bytes = std::size_t{1} << 40};

std::string refusal(const std::string& path, const file_limits& limits = wide) {
  const error e = error_of([&] { (void)unpacked_text_of_file(path, limits); });
  EXPECT_EQ(e.code(), errc::invalid_argument);
  const std::string text = e.what();
  EXPECT_TRUE(text.starts_with(path + ": ")) << text;
  return text.substr(std::min(path.size() + 2, text.size()));
}

void write(const std::string& path, const std::string& text) {
  std::FILE* out = std::fopen(path.c_str(), "wb");
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

/// Adds a text to a file, compressed.
void append_packed(const std::string& path, const std::string& text, int times = 1) {
  gzFile out = gzopen(path.c_str(), "ab1");
  for (int i = 0; i < times; ++i) gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
}

TEST(packed_files, are_unpacked) {
  const untax_test::temporary_file file;
  append_packed(file.path(), "1,2\n");
  EXPECT_EQ(unpacked_text_of_file(file.path(), wide), "1,2\n");
  append_packed(file.path(), "3,4\n");
  EXPECT_EQ(unpacked_text_of_file(file.path(), wide), "1,2\n3,4\n") << "joined";
  write(file.path(), text_of_file(file.path()) + "else");
  EXPECT_EQ(unpacked_text_of_file(file.path(), wide), "1,2\n3,4\n") << "other bytes follow";
}

TEST(packed_files, need_not_be_packed) {
  const untax_test::temporary_file file;
  for (const std::string text : {"", "\x1f", "1,2\n"}) {
    write(file.path(), text);
    EXPECT_EQ(unpacked_text_of_file(file.path(), wide), text);
  }
}

TEST(packed_files, are_unpacked_up_to_their_limits) {
  const untax_test::temporary_file file;
  const std::string zeros(std::size_t{1} << 20, '0');
  append_packed(file.path(), zeros);
  EXPECT_EQ(unpacked_text_of_file(file.path(), {.bytes = zeros.size()}), zeros);
  EXPECT_EQ(refusal(file.path(), {.bytes = zeros.size() - 1}),
            "unpacks to more than 1048575 bytes; such a file has at most that");
  // Below the limit of the kind of file, and still far more than real files unpack to.
  append_packed(file.path(), zeros, 99);
  EXPECT_TRUE(refusal(file.path()).starts_with("unpacks to more than"));
}

TEST(packed_files, that_are_damaged_are_refused) {
  const untax_test::temporary_file file;
  append_packed(file.path(), "1,2\n3,4\n5,6\n");
  const std::string packed = text_of_file(file.path());
  for (std::size_t bytes = 2; bytes < packed.size(); ++bytes) {
    write(file.path(), packed.substr(0, bytes));
    EXPECT_EQ(refusal(file.path()), "its compressed data end too early") << bytes;
  }
  // The header's method of compression, the data, the sum and the size that end it.
  for (const std::size_t at :
       {std::size_t{2}, std::size_t{10}, packed.size() - 8, packed.size() - 4}) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x77);
    write(file.path(), damaged);
    EXPECT_EQ(refusal(file.path()), "cannot be read; it may be damaged") << at;
  }
}

}  // namespace
}  // namespace untax
