#pragma once
// The files of src/explain/page as they were when this was built, so that a program needs none of them. Used by
// page.cpp.
#include <string_view>

namespace soybean::explain {

extern const std::string_view page_html; ///< with {{title}}, {{css}}, {{data}} and {{js}} to be filled in
extern const std::string_view page_css;
extern const std::string_view page_js;

} // namespace soybean::explain
