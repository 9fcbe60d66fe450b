# Everything comes from Debian packages (see Makefile, target `packages`).
find_package(SystemCLanguage CONFIG QUIET)  # a source build of SystemC, where the user has one
if(NOT TARGET SystemC::systemc)
  find_path(SystemC_INCLUDE_DIR systemc HINTS $ENV{SYSTEMC_HOME}/include)
  find_library(SystemC_LIBRARY systemc HINTS $ENV{SYSTEMC_HOME}/lib $ENV{SYSTEMC_HOME}/lib-linux64)
  if(NOT SystemC_INCLUDE_DIR OR NOT SystemC_LIBRARY)
    message(FATAL_ERROR "SystemC not found: apt-get install libsystemc-dev, or set SYSTEMC_HOME")
  endif()
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES
    IMPORTED_LOCATION "${SystemC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SystemC_INCLUDE_DIR}")
endif()

find_package(yaml-cpp REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options context)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
