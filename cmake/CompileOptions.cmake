# Flags of our own code; libraries are system includes and stay silent.
add_library(kernbench_options INTERFACE)
add_library(kernbench::options ALIAS kernbench_options)
target_include_directories(kernbench_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(kernbench_options INTERFACE -Wall -Wextra -Werror -fstack-clash-protection)
# Libraries are linked statically: their functions may be inlined although they are position independent.
target_compile_options(kernbench_options INTERFACE -fno-semantic-interposition)
# Dynamic processes: sc_spawn, before any SystemC header.
target_compile_definitions(kernbench_options INTERFACE SC_ENABLE_ASSERTIONS SC_INCLUDE_DYNAMIC_PROCESSES)
# The warning takes a source for a header where it is not the main file, as in a unity build. A name in an unnamed
# namespace is therefore unique in its target.
if(CMAKE_UNITY_BUILD)
  target_compile_options(kernbench_options INTERFACE -Wno-subobject-linkage)
  # g++ collects its garbage from 128 MiB on, again and again; from 1 GiB on it takes 8% less time, and up to 1.7 GiB.
  target_compile_options(kernbench_options INTERFACE --param=ggc-min-heapsize=1048576)
endif()

option(KERNBENCH_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
if(KERNBENCH_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A null pointer and what lies outside of an object end in AddressSanitizer's report as well, types are cast down by
  # dynamic_cast, and x86 reads any alignment: two fifths of the compilation for checks that find nothing more.
  add_compile_options(-fno-sanitize=null,vptr,object-size,alignment)
  add_link_options(-fsanitize=address,undefined)
  # g++ 12 reports std::regex's internals under -fsanitize: its flow analysis loses track behind the added checks.
  add_compile_options(-Wno-maybe-uninitialized)
  add_compile_definitions(KERNBENCH_TEARDOWN)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)  # a launcher that the caller names comes first
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Code that runs once a command, and programs of the simulated machine, in which a run spends little: a release build
# optimises it less, which takes 4/7 of the time to compile (measured: runs take as long). A sanitized build at -O0 would
# take 18% less, and its tests a fifth more.
function(kernbench_cold)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()
