#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <untax/sparse/matrix_market.hpp>

#include "support.hpp"
#include "tests/temporary_file.hpp"

namespace untax::sparse {
namespace {

using test::refusal;

constexpr const char* general = "%%MatrixMarket matrix coordinate real general\n";
constexpr const char* symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";

/// GCC 12 warns of `+` between texts.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string result;
  for (const std::string_view part : parts) result.append(part);
  return result;
}

csr<double, std::int32_t> read(const std::string& text) {
  return csr_of<double, std::int32_t>(read_matrix_market(text, "m.mtx"));
}

TEST(matrix_files, are_read) {
  const auto m = read(joined(
      {general, "% a comment\n\n 3 4 5 \n2 1 1.5\n1 4 -2e0\n%between\n1 1 +3\n2 1 1\n3 2 4\r\n"}));
  EXPECT_EQ(m.rows, 3);
  EXPECT_EQ(m.cols, 4);
  EXPECT_EQ(m.offsets, (std::vector<std::int32_t>{0, 2, 3, 4}));
  EXPECT_EQ(m.columns, (std::vector<std::int32_t>{0, 3, 0, 1}));
  EXPECT_EQ(m.values, (std::vector<double>{3, -2, 2.5, 4}));
  require_valid(m.view());
}

TEST(matrix_files, of_a_lower_triangle_are_completed) {
  const auto m = read(joined({symmetric, "3 3 3\n1 1 2\n2 1 5\n3 2 7\n"}));
  EXPECT_EQ(m.offsets, (std::vector<std::int32_t>{0, 2, 4, 5}));
  EXPECT_EQ(m.values, (std::vector<double>{2, 5, 5, 7, 7}));
  const auto skew = read("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 3\n");
  EXPECT_EQ(skew.values, (std::vector<double>{-3, 3}));
  const auto pattern =
      read("%%matrixmarket MATRIX Coordinate PATTERN Symmetric\n2 2 2\n1 1\n2 1\n");
  EXPECT_EQ(pattern.values, (std::vector<double>{1, 1, 1}));
}

/// As real files have them: the upper triangle, or some of both, a place twice among them.
TEST(matrix_files, of_an_upper_triangle_or_both_are_completed) {
  const auto m = read(joined({symmetric, "3 3 4\n1 1 2\n1 2 5\n3 2 7\n2 3 0.5\n"}));
  EXPECT_EQ(m.offsets, (std::vector<std::int32_t>{0, 2, 4, 5}));
  EXPECT_EQ(m.columns, (std::vector<std::int32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(m.values, (std::vector<double>{2, 5, 5, 7.5, 7.5}));
  const auto skew = read("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n1 2 3\n");
  EXPECT_EQ(skew.values, (std::vector<double>{3, -3}));
}

/// As scipy and other readers take them.
TEST(matrix_files, may_deviate_from_the_format_in_harmless_ways) {
  const std::string_view two = "2 2 2\n1 1 1\n2 1 4\n";
  const std::vector<double> values = {1, 4};
  EXPECT_EQ(read(joined({"%MatrixMarket matrix coordinate real general\n", two})).values, values);
  EXPECT_EQ(read(joined({"\xef\xbb\xbf", general, two})).values, values);
  EXPECT_EQ(
      read(joined({"%%MatrixMarket matrix coordinate unsigned-integer general\n", two})).values,
      values);
  EXPECT_EQ(
      read(joined({general, "2 2 2 % sizes\n1 1 1 % first\n  \t% indented\n2 1 4 %\n"})).values,
      values);
  const auto skew =
      read("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n1 1 0\n2 1 3\n");
  EXPECT_EQ(skew.values, (std::vector<double>{0, -3, 3}));
}

TEST(matrix_files, may_be_empty_and_have_small_numbers) {
  EXPECT_EQ(read(joined({general, "0 0 0\n"})).rows, 0);
  EXPECT_EQ(read(joined({general, "5 0 0"})).rows, 5);
  EXPECT_EQ(read(joined({general, "1 1 1\n1 1 1e-400"})).values[0], 0);
}

TEST(matrix_files, are_decompressed) {
  const untax_test::temporary_file file;
  const std::string text = joined({general, "1 2 1\n1 2 8\n"});
  gzFile out = gzopen(file.path().c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  EXPECT_EQ(load_matrix_market(file.path()).value, std::vector<double>{8});
  // Cut off, it is refused and not half a matrix.
  FILE* whole = std::fopen(file.path().c_str(), "rb");
  std::vector<char> bytes(1000);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), whole));
  std::fclose(whole);
  for (std::size_t size = 11; size < bytes.size(); ++size) {
    FILE* cut = std::fopen(file.path().c_str(), "wb");
    std::fwrite(bytes.data(), 1, size, cut);
    std::fclose(cut);
    const std::string text_of = refusal([&] { (void)load_matrix_market(file.path()); });
    EXPECT_NE(text_of, "") << size;
    EXPECT_EQ(text_of.find('\n'), std::string::npos);
  }
  EXPECT_NE(refusal([] { (void)load_matrix_market("/nonexistent.mtx"); }).find("cannot be opened"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)load_matrix_market("/"); }), "");
}

struct malformed {
  std::string text;
  const char* says;
};

std::vector<malformed> malformed_files() {
  const std::string_view g = general;
  const std::string_view s = symmetric;
  const std::string_view head = "%%MatrixMarket matrix coordinate ";
  std::vector<malformed> files = {
      {"", "line 1: a Matrix Market file begins"},
      {"\n", "line 1: a Matrix Market file begins"},
      {joined({"\n", g, "1 1 0\n"}), "line 1: a Matrix Market file begins"},
      {"1 1 0\n", "line 1: a Matrix Market file begins"},
      {"%%MatrixMarke matrix coordinate real general\n1 1 0\n", "begins"},
      {std::string("\0\0\0\0", 4), "begins"},
      {std::string(5000, '%'), "begins"},
      {"%%MatrixMarket", "it holds a \"\""},
      {"%%MatrixMarket\n1 1 0\n", "it holds a \"\""},
      {"%%MatrixMarket vector coordinate real general\n1 0\n", "it holds a \"vector\""},
      {"%%MatrixMarket matrix\n", "its format is \"\""},
      {"%%MatrixMarket matrix dense real general\n", "its format is \"dense\""},
      {"%%MatrixMarket matrix array real general\n1 1\n1\n", "it is an array"},
      {joined({head, "\n"}), "its elements are \"\""},
      {joined({head, "quaternion general\n"}), "its elements are \"quaternion\""},
      {joined({head, "complex general\n1 1 1\n1 1 1 0\n"}), "its elements are complex"},
      {joined({head, "real\n"}), "its symmetry is \"\""},
      {joined({head, "real diagonal\n"}), "its symmetry is \"diagonal\""},
      {joined({head, "real hermitian\n1 1 0\n"}), "it is hermitian"},
      {joined({head, "complex hermitian\n1 1 0\n"}), "its elements are complex"},
      {joined({head, "pattern skew-symmetric\n1 1 0\n"}), "a pattern has no signs"},
      {joined({head, "real general sorted\n1 1 0\n"}), "the header is followed by \"sorted\""},
      {std::string(g), "line 1: it ends before the line with rows"},
      {joined({g, "% only\n% comments\n"}), "line 3: it ends before"},
      {joined({g, "3\n"}), "the number of columns is missing"},
      {joined({g, "3 3\n"}), "the number of entries is missing"},
      {joined({g, "3 3 0 0\n"}), "the number of entries is followed by \"0\""},
      {joined({g, "-3 3 0\n"}), "the number of rows is \"-3\"; it has to be from 0"},
      {joined({g, "3 -3 0\n"}), "the number of columns is \"-3\""},
      {joined({g, "3 3 -1\n"}), "the number of entries is \"-1\""},
      {joined({g, "three 3 0\n"}), "the number of rows is \"three\"; it has to be a whole number"},
      {joined({g, "3.0 3 0\n"}), "the number of rows is \"3.0\""},
      {joined({g, "3e2 3 0\n"}), "the number of rows is \"3e2\""},
      {joined({g, "0x3 3 0\n"}), "the number of rows is \"0x3\""},
      {joined({g, "2147483648 3 0\n"}),
       "the number of rows is \"2147483648\"; it has to be from 0 to"},
      {joined({g, "99999999999999999999 3 0\n"}), "it has to be from 0 to 2147483647"},
      {joined({g, "3 3 99999999999999999999\n"}), "the number of entries is"},
      {joined({g, "0 3 1\n1 1 1\n"}), "a matrix of 0 x 3 cannot have 1 entries"},
      {joined({s, "2 3 0\n"}), "a matrix of 2 x 3 cannot be symmetric"},
      {joined({g, "2 2 1\n"}), "line 2: it ends after 0 of 1 entries"},
      {joined({g, "2 2 2\n1 1 1\n"}), "line 3: it ends after 1 of 2 entries"},
      {joined({g, "2 2 9223372036854775807\n1 1 1\n"}), "it ends after 1 of 9223372036854775807"},
      {joined({g, "2 2 1\n1 1 1\n2 2 2\n"}), "line 4: there are more entries than the 1 of"},
      {joined({g, "2 2 1\n0 1 1\n"}), "line 3: the row is \"0\"; it has to be from 1 to 2"},
      {joined({g, "2 2 1\n3 1 1\n"}), "the row is \"3\""},
      {joined({g, "2 2 1\n1 0 1\n"}), "the column is \"0\""},
      {joined({g, "2 2 1\n1 3 1\n"}), "the column is \"3\""},
      {joined({g, "2 2 1\n-1 1 1\n"}), "the row is \"-1\""},
      {joined({g, "2 2 1\n1.5 1 1\n"}), "the row is \"1.5\""},
      {joined({g, "2 2 1\n1\n"}), "the column is missing"},
      {joined({g, "2 2 1\n1 1\n"}), "the entry has no value"},
      {joined({g, "2 2 1\n1 1 x\n"}), "the value is \"x\""},
      {joined({g, "2 2 1\n1 1 1,5\n"}), "the value is \"1,5\""},
      {joined({g, "2 2 1\n1 1 1.5D0\n"}), "the value is \"1.5D0\""},
      {joined({g, "2 2 1\n1 1 nan\n"}), "the value is \"nan\"; it has to be a finite number"},
      {joined({g, "2 2 1\n1 1 -inf\n"}), "the value is \"-inf\""},
      {joined({g, "2 2 1\n1 1 1e999\n"}), "the value is \"1e999\""},
      {joined({g, "2 2 1\n1 1 --1\n"}), "the value is \"--1\""},
      {joined({g, "2 2 1\n1 1 1 2\n"}), "the entry is followed by \"2\""},
      {joined({head, "unsigned-integer general\n1 1 1\n1 1 -1\n"}),
       "the value is \"-1\"; the header says unsigned-integer"},
      {joined({g, "2 2 1\n1 1 +-5\n"}), "the value is \"+-5\""},
      {joined({g, "2 2 1\n+-1 1 5\n"}), "the row is \"+-1\"; it has to be a whole number"},
      {joined({head, "integer general\n1 1 1\n1 1 1.5\n"}),
       "the value is \"1.5\"; the header says integer"},
      {joined({head, "pattern general\n1 1 1\n1 1 1\n"}), "the entry is followed by \"1\""},
      {joined({s, "2 2 1\n1 3 1\n"}), "the column is \"3\""},
      {joined({head, "real skew-symmetric\n2 2 1\n2 2 1\n"}), "entry (2, 2) is 1, on the diagonal"},
      {joined({g, "2 2 1\n1 1 ", std::string(100000, '7'), "x\n"}), "7777...\""},
      {joined({g, "2 2 1\n1 1 \x01\x02\xff\n"}), "the value is \"???\""},
      {joined({g, std::string("2 2 1\n1 1 1\0", 12)}), "the value is \"1?\""},
  };
  return files;
}

TEST(matrix_files, that_are_malformed_are_refused_in_one_line) {
  const std::vector<malformed> files = malformed_files();
  EXPECT_GE(files.size(), 60U);
  for (const malformed& m : files) {
    const std::string text = refusal([&] { (void)read(m.text); });
    EXPECT_TRUE(text.starts_with("m.mtx, line ")) << text;
    EXPECT_NE(text.find(m.says), std::string::npos)
        << "\"" << text << "\" should say \"" << m.says << "\"";
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_LT(text.size(), 250U) << text;
  }
}

TEST(matrix_files, that_are_damaged_are_read_or_refused) {
  const std::string whole = joined({symmetric, "% c\n3 3 4\n1 1 1.5\n2 1 2\n3 3 -4e1\n3 1 9\n"});
  std::mt19937_64 random(11);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = whole;
    for (std::uint64_t edits = random() % 3 + 1; edits > 0; --edits) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged.resize(at + 1);
          break;
        case 1:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        case 2:
          damaged.erase(at, random() % 5);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), 6));
      }
      if (damaged.empty()) damaged = "%";
    }
    // A number may have become another one; what cannot be used is refused.
    try {
      require_valid(read(damaged).view());
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  }
}

TEST(matrix_files, elements_outside_are_refused) {
  coordinates c{2, 2, {0, 2}, {0, 0}, {1, 1}};
  EXPECT_NE(refusal([&] { (void)csr_of<float, std::int64_t>(c); }).find("element 1 is in row 2"),
            std::string::npos);
  c.row[1] = -1;
  EXPECT_NE(refusal([&] { (void)csr_of<float, std::int64_t>(c); }), "");
}

}  // namespace
}  // namespace untax::sparse
