# Files built into a library as texts, so that the tool needs no data folder.
#
# kernbench_embed_texts(SOURCE NAMESPACE VARIABLE FILE...): SOURCE names a variable that gets the C++ source to compile. It
# defines VARIABLE in kernbench::NAMESPACE, an array of EmbeddedText (tlm/config/embedded_text.h) of these files.
function(kernbench_embed_texts source namespace variable)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${namespace}.cpp)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DOUTPUT=${output} -DNAMESPACE=${namespace} -DVARIABLE=${variable} -P ${script}
    DEPENDS ${ARGN} ${script}
    VERBATIM)
  set(${source} ${output} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

# As a script: writes OUTPUT.
set(code "// Written by cmake/EmbedTexts.cmake.\n#include \"tlm/config/embedded_text.h\"\n\nnamespace kernbench::${NAMESPACE} {\n\n")
string(APPEND code "extern const EmbeddedText ${VARIABLE}[];\nconst EmbeddedText ${VARIABLE}[] = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(APPEND code "    {\"${name}\", R\"text(${text})text\"},\n")
endforeach()
string(APPEND code "    {nullptr, nullptr},\n};\n\n}  // namespace kernbench::${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${code}")
