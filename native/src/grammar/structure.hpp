#pragma once

#include "grammar/ir.hpp"
#include "grammar/limits.hpp"

#include <cstdint>
#include <vector>

namespace mashbox::grammar {

/// How the nodes of a grammar hang together, rules followed.
struct Structure {
  /// Strongly connected groups of nodes, those that others lead to first; in a group by index.
  std::vector<std::vector<ir::NodeIndex>> groups;
  std::vector<bool> cyclic;  ///< per node: it leads back to itself
  std::vector<bool> regular; ///< per node: neither it nor what it leads to is cyclic, a token, or free text up to a token
  std::vector<uint32_t> size; ///< per node: nodes in place of it when rules are written out where that is possible
};

Structure analyse(const ir::Grammar& grammar);

} // namespace mashbox::grammar
