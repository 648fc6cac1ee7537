#include "test.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <vector>

namespace mashbox::test {
namespace {

struct Skipped {
  std::string reason;
};

struct Failure {
  std::string message;
};

struct Case {
  std::string name;
  std::function<void()> body;
  bool threaded;
};

#if defined(__SANITIZE_THREAD__)
constexpr bool ThreadedOnly = true;
#else
constexpr bool ThreadedOnly = false;
#endif

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

std::filesystem::path projectRoot() {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
}

} // namespace

Test::Test(std::string name, std::function<void()> body) { cases().push_back({std::move(name), std::move(body), false}); }
Test::Test(std::string name, Threaded, std::function<void()> body) { cases().push_back({std::move(name), std::move(body), true}); }

void check(bool condition, const std::string& what, std::source_location where) {
  if (!condition)
    throw Failure{std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " + (what.empty() ? "check failed" : what)};
}

void skip(const std::string& reason) { throw Skipped{reason}; }

std::filesystem::path golden(const std::string& path) {
  for (const auto& root : {projectRoot() / "test/fixtures/golden", projectRoot().parent_path() / "shared/golden"})
    if (std::filesystem::exists(root / path)) return root / path;
  skip("no golden/" + path);
}

std::string readFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace mashbox::test

/// Runs every test whose name contains the first argument (all without one); the last line sums them up.
int main(int argc, char** argv) {
  using namespace mashbox::test;
  const std::string filter = argc > 1 ? argv[1] : "";
  int passed = 0, failed = 0, skipped = 0, outOfScope = 0;
  for (const auto& test : cases()) {
    if (test.name.find(filter) == std::string::npos) continue;
    if (ThreadedOnly && !test.threaded) {
      ++outOfScope;
      continue;
    }
    try {
      test.body();
      ++passed;
    } catch (const Skipped& s) {
      ++skipped;
      std::printf("skipped %s: %s\n", test.name.c_str(), s.reason.c_str());
    } catch (const Failure& f) {
      ++failed;
      std::printf("FAILED  %s\n        %s\n", test.name.c_str(), f.message.c_str());
    } catch (const std::exception& e) {
      ++failed;
      std::printf("FAILED  %s\n        %s\n", test.name.c_str(), e.what());
    }
    std::fflush(stdout);
  }
  if (ThreadedOnly)
    std::printf("out of scope under ThreadSanitizer: %d tests in which one thread runs, and the %d files that have no others\n", outOfScope,
                MASHBOX_FILES_WITHOUT_THREADS);
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
