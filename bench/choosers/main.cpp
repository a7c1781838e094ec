// Writes the figures of bench/choosers/choosers.json, which docs/seer.md shows:
//     untax_choosers OUT TABLE.json... -- CHECK.json...
// where the tables are what `untax bench tune --json` wrote, and the checks what `--check` wrote.

#include <cstdio>
#include <exception>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/choosers/study.hpp"
#include "src/core/text_file.hpp"

int main(int argc, char** argv) {
  try {
    std::vector<untax::tuning_table> tables;
    std::vector<untax::tuning_entry> held_out;
    bool checks = false;
    for (int i = 2; i < argc; ++i) {
      if (argv[i] == std::string_view("--")) {
        checks = true;
        continue;
      }
      if (!checks) {
        tables.push_back(untax::load_table(argv[i]));
        continue;
      }
      for (auto& check : untax::bench::read_check(untax::text_of_file(argv[i]), argv[i]))
        held_out.push_back(std::move(check));
    }
    if (tables.empty() || held_out.empty()) {
      std::fputs(
          "untax_choosers OUT TABLE.json... -- CHECK.json...: needs the files of "
          "bench/choosers/tables and bench/results\n",
          stderr);
      return 2;
    }
    const auto figures = untax::bench::study_choosers(tables, held_out, untax::bench::all_ways());
    std::ofstream out(argv[1]);
    out << untax::bench::to_json(figures);
    return out.flush() ? 0 : 1;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
}
