#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <source_location>
#include <string>

namespace mashbox::test {

/// Marks a test in which several threads run. No other proves anything under ThreadSanitizer, which runs these alone.
inline constexpr struct Threaded {
} threaded;

/// Registers a test: `static const Test t{"sampler: greedy takes the largest logit", [] { check(…); }};`
struct Test {
  Test(std::string name, std::function<void()> body);
  Test(std::string name, Threaded, std::function<void()> body);
};

/// Fails the running test, and says where, unless `condition` holds.
void check(bool condition, const std::string& what = "", std::source_location where = std::source_location::current());

/// Ends the running test as skipped, with a reason that is printed and counted.
[[noreturn]] void skip(const std::string& reason);

/// A golden file or folder by its path under `golden/`: the committed fixtures first, then ../shared/golden. Skips where neither has it.
std::filesystem::path golden(const std::string& path);

/// The whole file; fails the test when it cannot be read.
std::string readFile(const std::filesystem::path& path);

} // namespace mashbox::test
