# Stages 1 and 2 of the topology: topology.yaml to typed specs.
set(KERNBENCH_PRESETS minimal default ring8 torus4x4 torus8x8 torus16x16 mesh4x4 fc8 kernbench-py rebel100 astra huge)
set(KERNBENCH_PRESET_FILES)
foreach(preset ${KERNBENCH_PRESETS} hbm_generations)
  list(APPEND KERNBENCH_PRESET_FILES ${CMAKE_CURRENT_SOURCE_DIR}/presets/${preset}.yaml)
endforeach()

kernbench_embed_texts(KERNBENCH_PRESETS_CPP topology kEmbeddedPresets ${KERNBENCH_PRESET_FILES})

add_library(kernbench_topology_spec
  spec/check.cpp
  spec/embedded_presets.cpp
  spec/hbm_presets.cpp
  spec/neighbours.cpp
  spec/overrides.cpp
  spec/parse.cpp
  spec/resolve.cpp
  spec/schema.cpp
  spec/schema_cube.cpp
  spec/schema_json.cpp
  spec/schema_pe.cpp
  spec/schema_table.cpp
  ${KERNBENCH_PRESETS_CPP}
)
add_library(kernbench::topology_spec ALIAS kernbench_topology_spec)
kernbench_cold(kernbench_topology_spec)
target_link_libraries(kernbench_topology_spec PUBLIC kernbench::config kernbench::hbm kernbench::tlm PRIVATE PkgConfig::XXHASH)
