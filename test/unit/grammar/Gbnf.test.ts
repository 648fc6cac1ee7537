import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile } from "../../../src/grammar/Gbnf.ts"
import { type ErrorCase, itMatches, itRefuses, type LanguageCase } from "./frontEnd.ts"

const json = String.raw`# a value, as llama.cpp's own grammar has it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}`

const cases: ReadonlyArray<LanguageCase> = [
  ["JSON", json, ["{\"a\": [1, 2.5e1, \"x\\u00e9\"], \"b\": {}}", "{\n  \"a\":null}"], ["{\"a\" 1}", "[]", "{\"a\":\"\n\"}"]],
  [
    "arithmetic",
    "root ::= (expr \"=\" ws num \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= num | \"(\" ws expr \")\" ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*",
    [
      "1+(2*3)=7\n",
      "1 = 1\n2=2\n"
    ],
    ["1+=2\n", "1=1"]
  ],
  ["left recursion", "root ::= e\ne ::= e \"+\" t | e \"-\" t | t\nt ::= [a-z] | \"(\" e \")\"", ["a", "a+b-c", "(a+b)-c"], [
    "",
    "a+",
    "+a"
  ]],
  ["escapes", "root ::= \"\\x41\\u00e9\\U0001F600\\t\" [\\]\\-^] . \"\\\"\"", ["Aé😀\t]\n\"", "Aé😀\t-x\""], ["Aé😀\tax\""]],
  ["repetitions", "root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\"?", ["aab", "aabbccd"], ["ab", "aac", "aabccc"]],
  ["alternatives on lines of their own", "root ::=\n  \"a\"\n  | \"b\"\n  | c\nc ::= \"c\" # end", ["a", "b", "c"], ["ab", ""]],
  ["nothing", "root ::= \"\" | \"a\" root", ["", "aaa"], ["b"]],
  ["ranges and negation", "root ::= [^a-y0-9] [a\\-z]", ["za", "z-", "éz"], ["aa", "zb"]]
]

const errors: ReadonlyArray<ErrorCase> = [
  ["", "Invalid", 1, 1],
  ["value ::= \"a\"", "Invalid", 1, 1],
  ["root ::= \"a\n", "Invalid", 1, 10],
  ["root ::= [a\n", "Invalid", 1, 10],
  ["root ::= x\ny ::= \"b\"", "Invalid", 1, 10],
  ["root ::= (\"a\"\n", "Invalid", 1, 10],
  ["root ::= \"a\"\nroot ::= \"b\"", "Invalid", 2, 1],
  ["root ::= \"a\"\n\n  foo = \"b\"", "Invalid", 3, 7],
  ["root ::= \"\\q\"", "Invalid", 1, 11],
  ["root ::= \"a\"{3,1}", "Invalid", 1, 13],
  ["root ::= \"a\"{x}", "Invalid", 1, 13],
  ["root ::= [z-a]", "Invalid", 1, 12],
  ["root ::= )", "Invalid", 1, 10],
  ["root ::= * \"a\"", "Invalid", 1, 10],
  ["root ::= a\na ::= b \"x\"\nb ::= a | \"y\"", "Unsupported", 2, 1],
  ["root ::= e \"x\"\ne ::= n e | \"y\"\nn ::= \"\"", "Unsupported", 2, 1],
  ["root ::= <think>", "Unsupported", 1, 10],
  ["root ::= (=\"a\") \"a\"", "Unsupported", 1, 10],
  ["root ::= " + "(".repeat(1000), "TooLarge", 1, 211],
  ["root ::= root \"x\"", "Unsatisfiable", 0, 0],
  ["root ::= \"a\" root", "Unsatisfiable", 0, 0]
]

describe("GBNF", () => {
  itMatches(compile, cases)

  it("tokens by id", () => {
    const { rules } = Result.getOrThrow(compile("root ::= <[12]> \"a\""))
    assert.deepStrictEqual(rules[0]?.node, { kind: "sequence", items: [{ kind: "token", ids: [12] }, { kind: "text", value: "a" }] })
  })

  itRefuses(compile, errors)
})
