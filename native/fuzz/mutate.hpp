#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace mashbox::fuzz {

/// A random variation of `input`: one to eight of bit flips, interesting integers in places that may be lengths, counts or ids, copies,
/// removals, splices with another input, and cuts. A function of its arguments and the state of `random` alone.
std::string mutate(const std::string& input, const std::vector<std::string>& corpus, std::mt19937_64& random);

} // namespace mashbox::fuzz
