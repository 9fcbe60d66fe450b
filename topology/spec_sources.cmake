# Stages 1 and 2 of the topology: topology.yaml to typed specs. The presets' texts are built into the library, so that
# the tool needs no data folder.
set(KERNBENCH_PRESETS minimal default ring8 torus4x4 torus8x8 torus16x16 mesh4x4 fc8 kernbench-py rebel100 astra huge)
set(KERNBENCH_PRESET_FILES)
foreach(preset ${KERNBENCH_PRESETS} hbm_generations)
  list(APPEND KERNBENCH_PRESET_FILES ${CMAKE_CURRENT_SOURCE_DIR}/presets/${preset}.yaml)
endforeach()

set(KERNBENCH_PRESETS_CPP ${CMAKE_CURRENT_BINARY_DIR}/embedded_presets.cpp)
add_custom_command(
  OUTPUT ${KERNBENCH_PRESETS_CPP}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${KERNBENCH_PRESET_FILES}" -DOUTPUT=${KERNBENCH_PRESETS_CPP}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/embed_presets.cmake
  DEPENDS ${KERNBENCH_PRESET_FILES} ${CMAKE_CURRENT_SOURCE_DIR}/embed_presets.cmake
  VERBATIM)

add_library(kernbench_topology_spec
  check.cpp
  hbm_presets.cpp
  overrides.cpp
  parse.cpp
  resolve.cpp
  schema.cpp
  schema_cube.cpp
  schema_json.cpp
  schema_pe.cpp
  schema_table.cpp
  ${KERNBENCH_PRESETS_CPP}
)
add_library(kernbench::topology_spec ALIAS kernbench_topology_spec)
target_link_libraries(kernbench_topology_spec PUBLIC kernbench::config kernbench::tlm PRIVATE PkgConfig::XXHASH)
