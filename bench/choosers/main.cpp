// Writes the figures of bench/choosers/choosers.json, which docs/seer.md shows:
//     untax_choosers OUT CHECK.json...
// where the checks are what `untax bench tune --check --json` wrote.

#include <cstdio>
#include <exception>
#include <fstream>

#include <untax/select/table.hpp>

#include "bench/choosers/study.hpp"

int main(int argc, char** argv) {
  try {
    std::vector<untax::tuning_entry> held_out;
    for (int i = 2; i < argc; ++i) {
      for (auto& one : untax::bench::read_check(untax::select::text_of_file(argv[i]), argv[i]))
        held_out.push_back(std::move(one));
    }
    if (held_out.empty()) {
      std::fputs("untax_choosers OUT CHECK.json...: needs the files of bench/results\n", stderr);
      return 2;
    }
    const auto figures =
        untax::bench::study_choosers(untax::built_in_tables(), held_out, untax::bench::all_ways());
    std::ofstream out(argv[1]);
    out << untax::bench::to_json(figures);
    return out.flush() ? 0 : 1;
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
}
