#include <string>
#include <vector>

#include <untax/select/table.hpp>

#include "src/select/cells.hpp"
#include "src/select/packed_file.hpp"

namespace untax::select {

cells cells_of_file(const std::string& path) {
  const std::string text = unpacked_text_of_file(path, {.bytes = most_bytes});
  const bool is_json = path.ends_with(".json") || path.ends_with(".json.gz");
  return is_json ? cells_of_json(text, path) : cells_of_csv(text, path);
}

table read_table(const std::string& path, const schema& what) { return read_tables({path}, what); }

table read_tables(const std::vector<std::string>& paths, const schema& what) {
  std::vector<cells> parts;
  for (const std::string& path : paths) parts.push_back(wide_cells(cells_of_file(path), what));
  return table_of(parts.size() == 1 ? parts.front() : joined(parts, what.labels), what);
}

}  // namespace untax::select
