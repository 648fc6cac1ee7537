#include "grammar/cache.hpp"
#include "grammar/matcher.hpp"
#include "grammar_ir.hpp"
#include "test.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace mashbox::test {
namespace {

using grammar::Grammar;
using grammar::Matcher;
using Node = IrWriter::Node;

/// Compiles and matches `text` byte by byte, with a mask before each: whatever it costs ends in a result or a TooComplex error.
std::string outcome(const std::string& ir, const std::string& text, const grammar::Limits& limits = {}) {
  const auto compiled = Grammar::compile(irBytes(ir), byteVocabulary({"aa", "ab", "aaaa"}), limits);
  if (!compiled) {
    check(compiled.error().kind == ErrorKind::TooComplex, compiled.error().message);
    return "refused";
  }
  Matcher matcher(*compiled);
  std::vector<uint64_t> mask(matcher.maskWords());
  for (const char byte : text) {
    if (const auto masked = matcher.mask(mask); !masked) {
      check(masked.error().kind == ErrorKind::TooComplex, masked.error().message);
      return "spent";
    }
    if (!matcher.accept(static_cast<uint8_t>(byte))) return matcher.mask(mask) ? "no" : "spent";
  }
  return matcher.accepting() ? "yes" : "open";
}

const Test backtracking{"grammar: patterns that make backtracking matchers explode are matched in linear time", [] {
  const std::string many(300, 'a');
  IrWriter nested;
  const Node a = nested.text("a");
  check(outcome(nested.only(nested.sequence({nested.repeat(nested.repeat(a, 1), 1), nested.text("b")})), many + "b", Patient) == "yes", "(a+)+b");
  IrWriter twice;
  const Node alternatives = twice.repeat(twice.choice({twice.text("a"), twice.text("aa")}), 1);
  check(outcome(twice.only(twice.sequence({alternatives, twice.text("b")})), many + "c", Patient) == "no", "(a|aa)+b");
  IrWriter optional;
  check(outcome(optional.only(optional.sequence({optional.repeat(optional.repeat(optional.text("a"), 0, 1), 200, 200), optional.repeat(optional.text("a"), 200, 200)})), many, Patient) == "yes", "(a?){200}a{200}");
  IrWriter counted;
  const std::string result = outcome(counted.only(counted.repeat(counted.repeat(counted.text("a"), 1, 100), 1, 100)), many);
  check(result == "yes" || result == "spent", "(a{1,100}){1,100}: " + result);
}};

const Test exponential{"grammar: automata that grow without end are cut off with an error", [] {
  // The 20th letter from the end is an a: 2^20 states, of which a text of 300 letters meets 300.
  IrWriter last;
  const Node letter = last.set({{'a', 'b'}});
  std::string text;
  for (uint32_t i = 0; i < 300; ++i) text += i * i % 7 < 3 ? 'a' : 'b';
  const std::string result = outcome(last.only(last.sequence({last.repeat(letter), last.text("a"), last.repeat(letter, 19, 19)})), text);
  check(result != "refused" && result != "no", result);

  IrWriter huge;
  std::vector<Node> parts;
  for (uint32_t i = 2; i < 60; ++i) parts.push_back(huge.repeat(huge.repeat(huge.text("a"), i, i)));
  check(outcome(huge.only(huge.both({huge.both(parts), huge.repeat(huge.text("a"), 100'000)})), "aaa") == "refused", "the least common multiple of 2 to 59");
}};

const Test nesting{"grammar: deep nesting, long chains of rules and doubling grammars end with a result or an error", [] {
  for (const uint32_t depth : {200u, 1'000u, 100'000u}) {
    IrWriter ir;
    Node node = ir.text("a");
    for (uint32_t i = 0; i < depth; ++i) node = ir.repeat(ir.sequence({node, ir.text("b")}), 0, 3);
    check(outcome(ir.only(node), "ab", Patient) == (depth < 500 ? "open" : "refused"), std::to_string(depth) + " repeats");
  }
  for (const uint32_t depth : {400u, 20'000u}) {
    IrWriter ir;
    for (uint32_t i = 0; i < depth; ++i)
      ir.define("r" + std::to_string(i), ir.choice({ir.sequence({ir.rule("r" + std::to_string(i + 1)), ir.text("x")}), ir.sequence({ir.rule("r" + std::to_string(i + 1)), ir.text("yyyyyyyyyyyyyyyyyyyyyyyy")})}));
    ir.define("r" + std::to_string(depth), ir.choice({ir.text("a"), ir.sequence({ir.text("("), ir.rule("r0"), ir.text(")")})}));
    const std::string result = outcome(ir.finish("r0"), "a");
    check(result == "refused" || result == "open", std::to_string(depth) + " rules: " + result);
  }
  IrWriter doubling;
  doubling.define("r0", doubling.text("a"));
  for (int i = 1; i <= 60; ++i) {
    const Node before = doubling.rule("r" + std::to_string(i - 1));
    doubling.define("r" + std::to_string(i), doubling.sequence({before, before}));
  }
  check(outcome(doubling.finish("r60"), std::string(500, 'a'), Patient) == "open", "2^60 letters");
}};

const Test ambiguous{"grammar: an output that can be read in ever more ways ends with an error", [] {
  IrWriter ir;
  ir.define("s", ir.choice({ir.sequence({ir.text("a"), ir.rule("s"), ir.rule("s")}), ir.sequence({ir.text("a"), ir.rule("s"), ir.text("a")}), ir.text("a")}));
  const std::string result = outcome(ir.finish("s"), std::string(4'000, 'a'));
  check(result == "spent" || result == "yes", result);
}};

const Test hostile{"grammar: bytes that are no grammar get an error that names the place", [] {
  const auto message = [](const std::string& ir) {
    const auto compiled = Grammar::compile(irBytes(ir), byteVocabulary({}));
    check(!compiled, "it compiles");
    return compiled.error().message;
  };
  const auto names = [](const std::string& text, const std::string& part) { check(text.find(part) != std::string::npos, text); };
  names(message(""), "no bytes of a grammar");
  names(message("MBG1"), "end early");
  {
    IrWriter ir;
    names(message(ir.finish("nowhere")), "\"nowhere\" is not defined");
  }
  {
    IrWriter ir;
    ir.define("a", ir.rule("b"));
    names(message(ir.finish("a")), "\"b\" is not defined");
  }
  {
    IrWriter ir;
    ir.define("a", ir.rule("a"));
    names(message(ir.finish("a")), "rule \"a\": it matches no text");
  }
  {
    IrWriter ir;
    ir.define("a", ir.text("x"));
    ir.define("a", ir.text("y"));
    names(message(ir.finish("a")), "\"a\" is defined twice");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.repeat(ir.text("x"), 5, 4))), "node 1 (repeat): max is less than min");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.text("\xff"))), "node 0 (text): \"\\xff\" is not UTF-8");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.set({{5, 0x110000}}))), "node 0 (class)");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.token({1'000'000}))), "token 1000000 is not one of the model's");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.raw("\x63"))), "kind 99 does not exist");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.complement(7))), "node 0 (not): node 7 does not come before it");
  }
  {
    IrWriter ir;
    ir.define("tree", ir.choice({ir.text("x"), ir.sequence({ir.text("("), ir.rule("tree"), ir.text(")")})}));
    ir.define("other", ir.complement(ir.rule("tree")));
    names(message(ir.finish("other")), "rule \"other\": `and`, `not`, `lexeme` and `content` take no recursive rules");
  }
  {
    IrWriter ir;
    names(message(ir.only(ir.permutation({{ir.repeat(ir.text("x"))}}, ir.text(",")))), "matches the empty text");
  }
  names(message(std::string(5 << 20, 'x')), "bytes are more than");
  {
    IrWriter ir;
    ir.define("root", ir.text("x"));
    const std::string whole = ir.finish("root");
    for (size_t length = 0; length < whole.size(); ++length) message(whole.substr(0, length));
    names(message(whole + "x"), "after its end");
  }
}};

const Test cache{"grammar: the cache gives the same grammar for the same bytes, reads the vocabulary once and forgets the oldest", [] {
  int loads = 0;
  grammar::GrammarCache cache([&]() -> Result<grammar::Tokens> {
    ++loads;
    return grammar::Tokens{{{"a", true}, {"b", true}}, {}};
  }, 2);
  const auto ir = [](const char* text) {
    IrWriter writer;
    return writer.only(writer.text(text));
  };
  const std::string first = ir("a"), second = ir("b"), third = ir("ab"), broken = "MBG1";
  check(cache.find(irBytes(first)) == nullptr, "nothing yet");
  const auto one = *cache.get(irBytes(first));
  check(cache.find(irBytes(first)) == one && *cache.get(irBytes(first)) == one, "kept");
  check(static_cast<bool>(cache.get(irBytes(second))) && cache.find(irBytes(first)) == one, "both");
  check(static_cast<bool>(cache.get(irBytes(third))) && cache.find(irBytes(second)) == nullptr && cache.find(irBytes(first)) == one, "the oldest is gone");
  check(!cache.get(irBytes(broken)) && cache.find(irBytes(broken)) == nullptr && loads == 1, "errors are not kept");
}};

const Test shared{"grammar: several threads may ask the cache at once", test::threaded, [] {
  std::atomic<int> loads = 0, failures = 0;
  grammar::GrammarCache cache([&]() -> Result<grammar::Tokens> {
    ++loads;
    return grammar::Tokens{{{"a", true}, {"b", true}, {"ab", true}}, {}};
  }, 16);
  std::vector<std::string> all;
  for (const char* text : {"a", "b", "ab", "ba"}) {
    IrWriter ir;
    all.push_back(ir.only(ir.text(text)));
  }
  const auto ask = [&](size_t first) {
    for (size_t i = 0; i < 200; ++i) {
      const auto bytes = irBytes(all[(first + i) % all.size()]);
      if (!cache.get(bytes) || !cache.find(bytes)) ++failures;
    }
  };
  std::thread left([&] { ask(0); }), right([&] { ask(2); });
  left.join();
  right.join();
  check(loads == 1 && failures == 0);
}};

const Test threads{"grammar: matchers of one grammar may be used by several threads", test::threaded, [] {
  IrWriter ir;
  ir.define("list", ir.sequence({ir.text("["), ir.repeat(ir.choice({ir.rule("list"), ir.lexeme(ir.repeat(ir.set({{'a', 'z'}}), 1, 300))})), ir.text("]")}));
  const auto grammar = compile(ir.finish("list"), byteVocabulary({"[[", "ab", "cde]", "]]"}));
  std::atomic<int> failures = 0;
  const auto run = [&](uint64_t seed) {
    for (int times = 0; times < 20; ++times) {
      Matcher matcher(grammar);
      std::vector<uint64_t> mask(matcher.maskWords());
      for (int step = 0; step < 60; ++step) {
        if (!matcher.mask(mask)) ++failures;
        seed = seed * 6364136223846793005 + 1442695040888963407;
        int32_t token = static_cast<int32_t>(seed >> 40) % 260;
        for (int tries = 0; tries < 260 && (mask[static_cast<size_t>(token) / 64] >> token % 64 & 1) == 0; ++tries) token = (token + 1) % 260;
        if (matcher.accepting() && !matcher.accept(token)) break;
        if (!matcher.accepting() && matcher.length() == 0 && !matcher.accept(token)) ++failures;
      }
    }
  };
  std::thread left([&] { run(1); }), right([&] { run(2); });
  left.join();
  right.join();
  check(failures == 0, "what a mask has is accepted");
}};

} // namespace
} // namespace mashbox::test
