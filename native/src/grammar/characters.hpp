#pragma once

#include "grammar/terms.hpp"

#include <utility>
#include <vector>

namespace mashbox::grammar {

/// One code point inside the ranges, or outside all of them, as UTF-8. Surrogates are left out.
Term characters(TermTable& terms, std::vector<std::pair<uint32_t, uint32_t>> ranges, bool negated);

/// Any well-formed UTF-8 text.
Term anyText(TermTable& terms);

} // namespace mashbox::grammar
