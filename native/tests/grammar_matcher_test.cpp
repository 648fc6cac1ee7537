#include "grammar/ir.hpp"
#include "grammar/matcher.hpp"
#include "grammar_ir.hpp"
#include "grammar_random.hpp"
#include "grammar_reference.hpp"
#include "test.hpp"

#include <string>
#include <vector>

namespace mashbox::test {
namespace {

using grammar::Matcher;

bool accepts(const std::shared_ptr<const grammar::Grammar>& grammar, const std::string& text) {
  Matcher matcher(grammar);
  for (const char byte : text)
    if (!matcher.accept(static_cast<uint8_t>(byte))) return false;
  return matcher.accepting();
}

/// The grammar has used up what it may cost, for example because a text can be read in too many ways.
bool spent(const std::shared_ptr<const grammar::Grammar>& grammar) {
  Matcher matcher(grammar);
  std::vector<uint64_t> mask(matcher.maskWords());
  return !matcher.mask(mask);
}

/// Every text of up to `most` letters, and some longer ones.
std::vector<std::string> samples(Random& random, size_t most) {
  std::vector<std::string> texts{""};
  for (size_t i = 0, length = 0; i < texts.size(); ++i) {
    length = static_cast<size_t>(std::count_if(texts[i].begin(), texts[i].end(), [](char c) { return (c & 0xc0) != 0x80; }));
    if (length == most) break;
    const std::string text = texts[i];
    for (const auto& letter : letters()) texts.push_back(text + letter);
  }
  for (int i = 0; i < 40; ++i) texts.push_back(randomText(random, 12));
  texts.insert(texts.end(), {"\xc3", "a\xa9", "\xe2\x82", "\xff", "a\xc3\xa9\xc3"});
  return texts;
}

void compareWithReference(const std::string& ir, Random& random, size_t most, const std::string& name) {
  const auto decoded = grammar::ir::decode(irBytes(ir), 300, {});
  check(static_cast<bool>(decoded), decoded ? "" : decoded.error().message);
  const auto compiled = grammar::Grammar::compile(irBytes(ir), byteVocabulary({}), Patient);
  const auto texts = samples(random, most);
  if (!compiled) {
    if (compiled.error().message.find("an item of the permutation") != std::string::npos) return;
    check(compiled.error().message.find("matches no text") != std::string::npos, name + ": " + compiled.error().message);
    for (const auto& text : texts) check(!ReferenceMatcher(*decoded, text).matches(), name + ": said to be empty, but matches \"" + text + "\"");
    return;
  }
  for (const auto& text : texts) {
    const bool expected = ReferenceMatcher(*decoded, text).matches();
    const bool accepted = accepts(*compiled, text);
    if (spent(*compiled)) return;
    check(accepted == expected, name + ": \"" + text + "\" must " + (expected ? "" : "not ") + "match");
  }
}

const Test regular{"grammar: random regular grammars match what trying everything matches", [] {
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    Random random(seed);
    IrWriter ir;
    const auto node = randomRegular(ir, random, 1 + below(random, 12));
    compareWithReference(ir.only(node), random, 3, "seed " + std::to_string(seed));
  }
}};

const Test recursive{"grammar: random recursive grammars match what trying everything matches", [] {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    compareWithReference(randomRecursive(random), random, 3, "seed " + std::to_string(seed));
  }
}};

const Test leftRecursion{"grammar: direct left recursion becomes repetition, other left recursion is refused by name", [] {
  IrWriter ir;
  const auto digit = ir.set({{'0', '9'}});
  ir.define("sum", ir.choice({ir.sequence({ir.rule("sum"), ir.text("+"), digit}), ir.sequence({ir.rule("sum"), ir.text("-"), digit}), digit}));
  const auto grammar = compile(ir.finish("sum"), byteVocabulary({}));
  for (const char* text : {"1", "1+2", "1-2+3-4"}) check(accepts(grammar, text), text);
  for (const char* text : {"", "+1", "1+", "12", "1+-2"}) check(!accepts(grammar, text), text);

  IrWriter indirect;
  indirect.define("a", indirect.choice({indirect.sequence({indirect.rule("b"), indirect.text("x")}), indirect.text("y")}));
  indirect.define("b", indirect.choice({indirect.sequence({indirect.rule("a"), indirect.text("z")}), indirect.text("w")}));
  const auto refused = grammar::Grammar::compile(irBytes(indirect.finish("a")), byteVocabulary({}));
  check(!refused && refused.error().kind == ErrorKind::Unsupported, "it compiles");
  check(refused.error().message.find("left-recursive") != std::string::npos && refused.error().message.find("rule \"") != std::string::npos, refused.error().message);
}};

const Test counts{"grammar: counts of ten thousand are not written out", [] {
  IrWriter ir;
  const auto body = ir.repeat(ir.set({{'"', '"'}}, true), 9'990, 10'000);
  const auto grammar = compile(ir.only(ir.sequence({ir.text("\""), ir.lexeme(body), ir.text("\"")})), byteVocabulary({}));
  for (const size_t length : {0, 9'989, 9'990, 10'000, 10'001})
    check(accepts(grammar, '"' + std::string(length, 'x') + '"') == (length >= 9'990 && length <= 10'000), std::to_string(length));
}};

const Test tokens{"grammar: tokens match by id, and user-defined ones also as their text", [] {
  const auto vocabulary = byteVocabulary({"<call>"}, 3); // 256 is <call>, 257 to 259 have no text
  IrWriter ir;
  const auto call = ir.choice({ir.token({257}), ir.token({256})});
  const auto grammar = compile(ir.only(ir.sequence({ir.free({{"", {258}}, {"END", {}}}), call, ir.text("<call>")})), vocabulary);
  const auto run = [&](const std::vector<int32_t>& ids) {
    Matcher matcher(grammar);
    for (const int32_t id : ids)
      if (!matcher.accept(id)) return false;
    return matcher.accepting();
  };
  check(run({'h', 'i', 258, 257, 256}), "a token ends free text");
  check(run({'E', 'N', 'D', 256, 256}), "a text ends free text");
  check(run({'E', 'N', 258, 256, '<', 'c', 'a', 'l', 'l', '>'}), "the beginning of a trigger is free text");
  check(!run({'E', 'N', 'D', 258}), "after one trigger there is no other");
  check(!run({'E', 'N', 'D', '<', 'c', 'a', 'l', 'l', '>', 256}), "a token is not its text");
  check(!run({259}) && !run({257}) && !run({-1}) && !run({100'000}), "other tokens");
  check(!run({0xe2, 258}), "no token stands inside a character");
}};

const Test rollback{"grammar: taking back tokens is as if they had not been", [] {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const auto vocabulary = byteVocabulary({"ab", "a\"", "\xc3\xa9", "b\xe2\x82", "aaa"});
    const auto compiled = grammar::Grammar::compile(irBytes(randomRecursive(random)), vocabulary, Patient);
    if (!compiled) continue;
    Matcher matcher(*compiled);
    std::vector<int32_t> output;
    std::vector<uint64_t> mask(matcher.maskWords()), fresh(matcher.maskWords());
    for (int step = 0; step < 60; ++step) {
      if (below(random, 4) == 0) {
        const size_t back = below(random, static_cast<uint32_t>(output.size()) + 1);
        matcher.rollback(back);
        output.resize(output.size() - back);
      }
      const auto token = static_cast<int32_t>(below(random, vocabulary->size()));
      for (int32_t tries = 0; tries < static_cast<int32_t>(vocabulary->size()); ++tries) {
        const int32_t candidate = (token + tries) % static_cast<int32_t>(vocabulary->size());
        Matcher copy = matcher;
        if (!copy.accept(candidate)) continue;
        matcher = copy;
        output.push_back(candidate);
        break;
      }
      Matcher replay(*compiled);
      for (const int32_t id : output) check(replay.accept(id), "a replay goes the same way");
      check(static_cast<bool>(matcher.mask(mask)) && static_cast<bool>(replay.mask(fresh)), "masks");
      check(mask == fresh && matcher.accepting() == replay.accepting() && matcher.length() == output.size(), "seed " + std::to_string(seed));
    }
  }
}};

/// A digit for every byte of `text` and one for its end: 1 where syntax comes next.
std::string syntaxOf(const std::string& ir, const std::string& text) {
  Matcher matcher(compile(ir, byteVocabulary({})));
  std::string result(1, matcher.syntactic() ? '1' : '0');
  for (const char byte : text) {
    check(matcher.accept(static_cast<uint8_t>(byte)), text + " at " + std::to_string(result.size()));
    result.push_back(matcher.syntactic() ? '1' : '0');
  }
  return result;
}

const Test syntax{"grammar: syntax is where neither content nor free text can come next, and the output cannot end", [] {
  const auto letters = [](IrWriter& ir) { return ir.repeat(ir.set({{'a', 'z'}}), 1, 4); };
  {
    IrWriter ir;
    const auto string = ir.content(ir.sequence({ir.text("\""), letters(ir), ir.text("\"")}));
    const auto digits = ir.content(ir.repeat(ir.set({{'0', '9'}}), 2, 2));
    ir.define("value", ir.choice({string, digits, ir.sequence({ir.text("["), ir.rule("value"), ir.text("]")})}));
    const auto pair = [&](const char* key) { return ir.sequence({ir.text(key), ir.rule("value")}); };
    const auto members = ir.permutation({{pair("\"k\":"), true}, {pair("\"n\":")}}, ir.text(","));
    ir.define("root", ir.sequence({ir.free({{"<c>", {}}}), ir.text("{"), members, ir.text("}")}));
    const std::string grammar = ir.finish("root");
    // What may be nested is content or a bracket: the model's to choose.
    check(syntaxOf(grammar, "hi<c>{\"k\":\"ab\",\"n\":42}") == "00000" "11111" "0000" "11111" "00" "1" "0", syntaxOf(grammar, "hi<c>{\"k\":\"ab\",\"n\":42}"));
    check(syntaxOf(grammar, "<c>{\"n\":[42],\"k\":42}") == "000" "11111" "000" "111111" "00" "1" "0", syntaxOf(grammar, "<c>{\"n\":[42],\"k\":42}"));
  }
  {
    IrWriter ir;
    const auto value = ir.content(letters(ir));
    const std::string grammar = ir.only(ir.sequence({ir.text("k="), value, ir.repeat(ir.sequence({ir.text(";k="), value}), 0, 2)}));
    check(syntaxOf(grammar, "k=ab;k=abcd;k=c") == "11" "000" "11" "0000" "0" "11" "00", syntaxOf(grammar, "k=ab;k=abcd;k=c"));
  }
  {
    IrWriter ir;
    check(syntaxOf(ir.only(ir.lexeme(ir.sequence({ir.content(letters(ir)), ir.text("!")}))), "ab!") == "1110", "inside a lexeme content is as its item");
  }
}};

const Test forced{"grammar: what must come is known, and cut into tokens up to where the model has a choice", [] {
  const auto vocabulary = byteVocabulary({"{\"", "name", "\":", " \"", " \"x", "true", "\"}"});
  IrWriter ir;
  const auto text = ir.lexeme(ir.repeat(ir.set({{'"', '"'}}, true), 1));
  const auto grammar = compile(ir.only(ir.sequence({ir.text("{\"name\": \""), text, ir.text("\"}")})), vocabulary);
  Matcher matcher(grammar);
  check(matcher.forced(100).bytes == "{\"name\": \"", matcher.forced(100).bytes);
  check(matcher.forced(4).bytes == "{\"na", "at most four bytes");
  // The text that follows may begin with x, and so may a token with ` "`: that boundary stays open.
  check(matcher.forcedTokens() == std::vector<int32_t>{256, 257, 258}, "the tokens");
  for (const int32_t token : {256, 257, 258, 260}) check(matcher.accept(token), "goes on");
  check(matcher.forced(100).bytes.empty() && matcher.forcedTokens().empty(), "free");
  check(matcher.accept('"'), "ends the text");
  check(matcher.forced(100).bytes == "}" && matcher.forced(100).complete, "the end");
  check(matcher.forcedTokens() == std::vector<int32_t>{'}'}, "the last token");
  check(matcher.accept('}') && matcher.forced(9).complete && matcher.forcedTokens().empty(), "nothing follows");
}};

} // namespace
} // namespace mashbox::test
