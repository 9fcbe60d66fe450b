# The installed package: `find_package(kernbench)` gives kernbench::api and kernbench_add_plugin (docs/api.md).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Headers behind <kernbench/kernbench.h>; a test keeps the list complete. They keep their folders under include/kernbench.
set(KERNBENCH_PUBLIC_HEADERS
  ccl/contract/contract.h
  ccl/contract/grid.h
  ccl/schedule/check.h
  ccl/contract/plan_request.h
  ccl/contract/schedule.h
  ccl/contract/verbs.h
  runtime/deadlock.h
  runtime/errors.h
  runtime/host_access.h
  runtime/placement.h
  runtime/launch_options.h
  runtime/replay_options.h
  runtime/runtime.h
  runtime/tensor.h
  runtime/tensor_geometry.h
  runtime/tp/attention.h
  runtime/tp/embedding.h
  runtime/tp/gemm.h
  runtime/tp/kv_cache.h
  runtime/tp/linear.h
  runtime/tp/mlp.h
  runtime/tp/model.h
  runtime/tp/moe.h
  runtime/tp/moe_routing.h
  runtime/tp/norm.h
  runtime/tp/parallel_state.h
  runtime/tp/regions.h
  runtime/tp/rope.h
  runtime/tp/rotary.h
  runtime/tp/transformer.h
  runtime/tp/vocabulary.h
  sc_main/workloads/plugin.h
  sc_main/workloads/workload.h
  tlm/ext/message.h
  tlm/ext/packet.h
  tlm/kernel/activation.h
  tlm/kernel/call.h
  tlm/kernel/direction.h
  tlm/kernel/dtype.h
  tlm/kernel/launch.h
  tlm/kernel/program.h
  tlm/kernel/tile.h
  tlm/kernel/tl.h
  tlm/machine/address.h
  tlm/machine/fidelity.h
  tlm/machine/ids.h
  tlm/machine/machine_map.h
  tlm/machine/routing.h
  tlm/machine/run_options.h
  tlm/observe/cause.h
  tlm/observe/observer.h
  tlm/observe/stretch.h
  tlm/observe/wait_for.h
  tlm/sim/dispatcher.h
  tlm/sim/activity.h
  tlm/sim/event_queue.h
  tlm/base/time.h
)
foreach(header IN LISTS KERNBENCH_PUBLIC_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kernbench/${folder} COMPONENT kernbench)
endforeach()
install(FILES sc_main/api/kernbench/kernbench.h sc_main/api/kernbench/program.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kernbench COMPONENT kernbench)

# What a plug-in is compiled with. It links nothing of ours: the tool that opens it exports what it needs.
add_library(kernbench_api INTERFACE)
set_target_properties(kernbench_api PROPERTIES EXPORT_NAME api)
target_compile_features(kernbench_api INTERFACE cxx_std_17)
target_compile_definitions(kernbench_api INTERFACE SC_ENABLE_ASSERTIONS)
# A kernel's stack has a guard below it, which a frame must not jump over.
target_compile_options(kernbench_api INTERFACE -fstack-clash-protection)
target_include_directories(kernbench_api INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sc_main/api>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kernbench>)
target_link_libraries(kernbench_api INTERFACE
  SystemC::systemc fmt::fmt nlohmann_json::nlohmann_json Boost::program_options)
add_library(kernbench::api ALIAS kernbench_api)

install(TARGETS kernbench COMPONENT kernbench)
install(TARGETS kernbench_api EXPORT kernbenchTargets COMPONENT kernbench)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kernbench)
install(EXPORT kernbenchTargets NAMESPACE kernbench:: DESTINATION ${config_folder} COMPONENT kernbench)
configure_package_config_file(cmake/kernbenchConfig.cmake.in ${PROJECT_BINARY_DIR}/kernbenchConfig.cmake
  INSTALL_DESTINATION ${config_folder} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kernbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kernbenchConfig.cmake ${PROJECT_BINARY_DIR}/kernbenchConfigVersion.cmake
  cmake/SystemC.cmake DESTINATION ${config_folder} COMPONENT kernbench)
install(FILES ${PROJECT_BINARY_DIR}/kernbenchConfig.cmake ${PROJECT_BINARY_DIR}/kernbenchConfigVersion.cmake
  cmake/SystemC.cmake DESTINATION ${config_folder} COMPONENT libraries EXCLUDE_FROM_ALL)

# The machine and single models as libraries, for a SystemC program of a user: the component `libraries`, in two sets, so
# that who takes one model needs no packages of the configuration.
#   find_package(kernbench COMPONENTS hbm noc link)   kernbench::hbm, ::noc, ::link
#   find_package(kernbench COMPONENTS machine)        the same, ::machine, and ::spec for topology files alone
set(library_folder ${CMAKE_INSTALL_LIBDIR}/kernbench)
function(kernbench_install_libraries set)
  foreach(name IN LISTS ARGN)
    set_target_properties(kernbench_${name} PROPERTIES EXPORT_NAME ${name})
    target_include_directories(kernbench_${name} INTERFACE
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kernbench>)
    install(TARGETS kernbench_${name} EXPORT ${set} ARCHIVE DESTINATION ${library_folder} COMPONENT libraries)
  endforeach()
  install(EXPORT ${set} NAMESPACE kernbench:: DESTINATION ${config_folder} COMPONENT libraries)
endfunction()
kernbench_install_libraries(kernbenchModels tlm memory noc link ucie hbm)
add_library(kernbench_machine INTERFACE)
target_link_libraries(kernbench_machine INTERFACE kernbench_topology kernbench_runtime kernbench_tp)
set_target_properties(kernbench_topology_spec PROPERTIES EXPORT_NAME spec)
kernbench_install_libraries(kernbenchMachine
  arith sram pe m_cpu io bridge models config topology_spec topology_plan topology ccl runtime tp machine)
# Their headers include each other; the umbrella headers of sc_main/api say which are meant to be included.
install(DIRECTORY ccl models runtime tlm topology DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kernbench COMPONENT libraries
  FILES_MATCHING PATTERN *.h)
install(DIRECTORY sc_main/api/kernbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libraries FILES_MATCHING PATTERN *.h)
