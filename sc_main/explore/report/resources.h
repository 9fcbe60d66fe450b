#pragma once

namespace kernbench::report {

// Parts of the page, built into the tool so that it needs no data folder; written by embed.cmake.
extern const char* const kPageTemplate;  ///< page/page.mustache
extern const char* const kStyle;         ///< page/style.css
extern const char* const kScript;        ///< page/*.js, in their order
extern const char* const kRunTemplate;   ///< page/run/run.mustache
extern const char* const kRunStyle;      ///< page/run/style.css, after kStyle
extern const char* const kRunScript;     ///< page/run/*.js
extern const char* const kD3;            ///< Debian's node-d3, minified
extern const char* const kD3Licence;

}  // namespace kernbench::report
