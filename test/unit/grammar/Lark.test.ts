import { describe, it } from "@effect/vitest"
import { compile } from "../../../src/grammar/Lark.ts"
import { larkLibrary } from "../../../src/grammar/LarkLibrary.ts"
import { checkLanguage, type ErrorCase, itMatches, itRefuses, type LanguageCase } from "./frontEnd.ts"

/** What Codex sends with its tool apply_patch. */
const applyPatch = `start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`

/** What Codex sends with its tool exec. */
const exec = `
start: pragma_source | plain_source
pragma_source: PRAGMA_LINE NEWLINE SOURCE
plain_source: SOURCE

PRAGMA_LINE: /[ \\t]*\\/\\/ @exec:[^\\r\\n]*/
NEWLINE: /\\r?\\n/
SOURCE: /[\\s\\S]+/
`

const calculator = `
// an expression
?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
    | product "/" atom  -> div
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | NAME             # a variable
     | "(" sum ")"

%import common.CNAME -> NAME
%import common (NUMBER, WS_INLINE)
%ignore WS_INLINE
`

const cases: ReadonlyArray<LanguageCase> = [
  ["apply_patch", applyPatch, [
    "*** Begin Patch\n*** Add File: a.txt\n+hi\n+\n*** End Patch",
    "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ def f():\n-a\n+b\n c\n*** End of File\n*** Delete File: c\n*** End Patch\n"
  ], [
    "*** Begin Patch\n*** End Patch\n",
    "*** Begin Patch\n*** Add File: \n+x\n*** End Patch",
    "*** Begin Patch\n*** Add File: a\nx\n*** End Patch"
  ]],
  ["exec", exec, ["// @exec: x\nlet a = 1\n", "anything\r\nat all"], [""]],
  ["a calculator", calculator, ["1 + 2*(x_1 - -4)/5.5 ", " ( 1 )", "a"], ["1+", "1 2", "(1", ""]],
  ["strings", "start: \"a\\n\\x41\"i /b+/i \"0\"..\"7\" \"\\\\\" \"\\\"\"", ["A\naBb5\\\"", "a\nAb0\\\""], ["a\nAb8\\\""]],
  ["repetitions", "start: \"a\"~2 \"b\"~1..3 [\"c\"] (\"d\" | \"e\")* \"f\"?", ["aab", "aabbbcdedf"], ["ab", "aabbbb", "aabcc"]],
  ["terminals of terminals", "start: WORD \" \" WORD\nWORD.2: LETTER (LETTER | DIGIT)*\nLETTER: \"a\"..\"z\"\nDIGIT: /[0-9]/", [
    "a1 b",
    "abc d9"
  ], ["1a b"]],
  ["flags of expressions", "start: /a.c/s /x/i", ["a\ncX", "abcx"], ["acx"]],
  ["priorities and marks", "!start.3: _a | ?b\n_a: \"a\"\n?b: \"b\"".replace("| ?b", "| b"), ["a", "b"], ["ab"]],
  ["what is ignored", "start: \"a\" \"b\"\n%ignore \" \"\n%ignore /#[^\\n]*\\n/", ["ab", " a  b ", "a#x\n b"], ["a#x b"]],
  ["alternatives over lines", "start: (\n  \"a\"\n  | \"b\"\n) \"c\"\n  | \"d\"", ["ac", "bc", "d"], ["c"]]
]

const errors: ReadonlyArray<ErrorCase> = [
  ["", "Invalid", 1, 1],
  ["a: \"x\"", "Invalid", 1, 1],
  ["start: \"a", "Invalid", 1, 8],
  ["start: b", "Invalid", 1, 8],
  ["start: \"a\"\nstart: \"b\"", "Invalid", 2, 1],
  ["start: (\"a\"", "Invalid", 1, 8],
  ["start \"a\"", "Invalid", 1, 7],
  ["start: \"a\" )", "Invalid", 1, 12],
  ["start: /[/", "Invalid", 1, 9],
  ["start: /a\\b/", "Unsupported", 1, 10],
  ["start: /^a/", "Unsupported", 1, 9],
  ["start: /(?=a)a/", "Unsupported", 1, 9],
  ["start: /a b/x", "Unsupported", 1, 8],
  ["start: \"a\"\n%declare X", "Unsupported", 2, 1],
  ["start: \"a\"\n%override start: \"b\"", "Unsupported", 2, 1],
  ["start: X\n%import python.X", "Unsupported", 2, 9],
  ["start: X\n%import common.NOPE -> X", "Invalid", 2, 16],
  ["list{x}: x\nstart: \"a\"", "Unsupported", 1, 5],
  ["start: list{\"a\"}", "Unsupported", 1, 8],
  ["start: \"b\"..\"a\"", "Invalid", 1, 8],
  ["start: \"a\"~3..1", "Invalid", 1, 11],
  ["start: A\nA: \"x\" A | \"y\"", "Invalid", 2, 1],
  ["start: A\nA: b\nb: \"y\"", "Invalid", 2, 4],
  ["start: a\na: b \"x\"\nb: a | \"y\"", "Unsupported", 2, 1],
  ["start: " + "(".repeat(1000), "TooLarge", 1, 209],
  ["start: \"a\" start", "Unsatisfiable", 0, 0]
]

describe("Lark", () => {
  itMatches(compile, cases)

  it("the common library", () => {
    const samples: Record<string, readonly [accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = {
      INT: [["0", "42"], ["-1", ""]],
      SIGNED_INT: [["-1", "+2"], ["1.0"]],
      DECIMAL: [["1.", ".5", "1.5"], ["1", "."]],
      FLOAT: [["1.5", "1e5", "1.e-3"], ["1", "e5"]],
      NUMBER: [["1", "1.5", "2e3"], ["-1", ""]],
      SIGNED_NUMBER: [["-1.5", "+3"], ["--1"]],
      ESCAPED_STRING: [["\"\"", "\"a\\\"b\""], ["\"a\"b\"", "\"\n\"", "\"a\\\""]],
      CNAME: [["_a1", "B"], ["1a"]],
      WS: [[" \n\t"], ["", "a"]],
      NEWLINE: [["\n", "\r\n\n"], ["\r"]],
      C_COMMENT: [["/* a * b */", "/**/"], ["/* a */ */", "/*"]],
      CPP_COMMENT: [["// x"], ["/ x", "//\n"]]
    }
    for (const name of larkLibrary.keys()) {
      const [accepted, refused] = samples[name] ?? [[], []]
      checkLanguage(compile, `start: ${name}\n%import common.${name}`, accepted, refused)
    }
  })

  itRefuses(compile, errors)
})
