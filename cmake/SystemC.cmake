# SystemC as Debian installs it, or where SYSTEMC_HOME points; a source build of the user's brings its own package.
find_package(SystemCLanguage CONFIG QUIET)
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
