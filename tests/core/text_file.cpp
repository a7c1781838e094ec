// Files that are read whole: what is no regular file, and what would fill memory, is refused.
#include "src/core/text_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "tests/errors.hpp"
#include "tests/temporary_file.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

std::string refusal(const std::string& path, const file_limits& limits = {}) {
  const error e = error_of([&] { (void)text_of_file(path, limits); });
  EXPECT_EQ(e.code(), errc::invalid_argument);
  EXPECT_TRUE(std::string(e.what()).starts_with(path + ": ")) << e.what();
  return std::string(e.what()).substr(std::min(path.size() + 2, std::string(e.what()).size()));
}

void write(const std::string& path, const std::string& text) {
  std::FILE* out = std::fopen(path.c_str(), "wb");
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

TEST(text_files, are_read_up_to_their_limit) {
  const untax_test::temporary_file file;
  write(file.path(), "12345");
  EXPECT_EQ(text_of_file(file.path()), "12345");
  EXPECT_EQ(text_of_file(file.path(), {.bytes = 5}), "12345");
  EXPECT_EQ(refusal(file.path(), {.bytes = 4}),
            "has more than 4 bytes; such a file has at most that");
}

TEST(text_files, that_are_no_regular_files_are_refused_at_once) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string pipe = testing::TempDir() + "untax-test-pipe" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), "is a pipe, not a regular file");
  unlink(pipe.c_str());
  EXPECT_EQ(refusal("/dev/zero"), "is a device, not a regular file");
  EXPECT_EQ(refusal("/"), "is a folder, not a regular file");
  EXPECT_EQ(refusal("/nonexistent"), "cannot be opened (No such file or directory)");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(text_files, byte_order_marks_are_dropped_and_utf_16_is_refused) {
  EXPECT_EQ(utf8_text("\xef\xbb\xbfname,n", "t"), "name,n");
  EXPECT_EQ(utf8_text("name,n", "t"), "name,n");
  expect_error(error_of([] { (void)utf8_text("\xff\xfen\0", "t.csv"); }), errc::invalid_argument,
               {"t.csv: is UTF-16; save it as UTF-8"});
}

TEST(text_files, control_characters_are_named) {
  EXPECT_EQ(control_character_in("a\tb\r\n\xc3\xa9"), "");
  EXPECT_EQ(control_character_in("a\x1b[31m"), "U+001B");
  EXPECT_EQ(control_character_in(std::string("a\0", 2)), "U+0000");
  EXPECT_EQ(control_character_in("\x7f"), "U+007F");
  EXPECT_EQ(control_character_in("\xc2\x9b"), "U+009B");
}

}  // namespace
}  // namespace untax
