# Compiles the tables of `untax bench tune` in: each line of ops/choice/tables/*.json becomes a line of text in a
# generated source, UNTAX_TABLES_SOURCE. A changed file configures again.
set(UNTAX_TABLES_SOURCE ${PROJECT_BINARY_DIR}/generated/built_in_tables.cpp)
file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ops/choice/tables/*.json)
set(texts "")
foreach(table IN LISTS tables)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  get_filename_component(name ${table} NAME)
  file(READ ${table} text)
  string(REPLACE "\n" ")line\",\nR\"line(" text "${text}")
  string(APPEND texts "{\"${name}\", joined({\nR\"line(${text})line\"})},\n")
endforeach()
file(CONFIGURE OUTPUT ${UNTAX_TABLES_SOURCE} @ONLY CONTENT [[#include "ops/choice/table.hpp"

namespace untax {

std::vector<named_text> built_in_texts() {
  return {
@texts@};
}

}  // namespace untax
]])
