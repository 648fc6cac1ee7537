import { parse, tokenize } from "@huggingface/jinja"
import { JinjaError } from "./Values.ts"

/** The syntax tree of @huggingface/jinja, by `type`. */
export type Node =
  | { readonly type: "If"; readonly test: Node; readonly body: ReadonlyArray<Node>; readonly alternate: ReadonlyArray<Node> }
  | {
    readonly type: "For"
    readonly loopvar: Node
    readonly iterable: Node
    readonly body: ReadonlyArray<Node>
    readonly defaultBlock: ReadonlyArray<Node>
  }
  | { readonly type: "Break" | "Continue" | "Comment" }
  | { readonly type: "Set"; readonly assignee: Node; readonly value: Node | null; readonly body: ReadonlyArray<Node> }
  | { readonly type: "Macro"; readonly name: Identifier; readonly args: ReadonlyArray<Node>; readonly body: ReadonlyArray<Node> }
  | {
    readonly type: "CallStatement"
    readonly call: Call
    readonly callerArgs: ReadonlyArray<Node> | null
    readonly body: ReadonlyArray<Node>
  }
  | { readonly type: "FilterStatement"; readonly filter: Identifier | Call; readonly body: ReadonlyArray<Node> }
  | { readonly type: "MemberExpression"; readonly object: Node; readonly property: Node; readonly computed: boolean }
  | Call
  | Identifier
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "StringLiteral"; readonly value: string }
  | { readonly type: "ArrayLiteral" | "TupleLiteral"; readonly value: ReadonlyArray<Node> }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Node, Node> }
  | { readonly type: "BinaryExpression"; readonly operator: Token; readonly left: Node; readonly right: Node }
  | { readonly type: "FilterExpression"; readonly operand: Node; readonly filter: Identifier | Call }
  | { readonly type: "SelectExpression"; readonly lhs: Node; readonly test: Node }
  | { readonly type: "TestExpression"; readonly operand: Node; readonly negate: boolean; readonly test: Identifier }
  | { readonly type: "UnaryExpression"; readonly operator: Token; readonly argument: Node }
  | {
    readonly type: "SliceExpression"
    readonly start: Node | undefined
    readonly stop: Node | undefined
    readonly step: Node | undefined
  }
  | { readonly type: "KeywordArgumentExpression"; readonly key: Identifier; readonly value: Node }
  | { readonly type: "SpreadExpression" | "KeywordSpreadExpression"; readonly argument: Node }
  | { readonly type: "Ternary"; readonly condition: Node; readonly trueExpr: Node; readonly falseExpr: Node }

export interface Identifier {
  readonly type: "Identifier"
  readonly value: string
}

export interface Call {
  readonly type: "CallExpression"
  readonly callee: Node
  readonly args: ReadonlyArray<Node>
}

interface Program {
  readonly type: "Program"
  readonly body: Array<Node>
}

type Token = ReturnType<typeof tokenize>[number]
type TokenType = Token["type"]

/** The loop variable that stands for a `with` block, and the filter names that stand for tests with an argument. */
export const withVariable = " with"
export const testPrefix = "is "
export const negatedTestPrefix = "is not "

const maximumSize = 262_144
// The package matches `\s*` before tags, in time that grows with the square of a run of white space.
const tooMuchSpace = /\s{1000}/

const token = (type: TokenType, value: string): Token => ({ type, value })

const rawTag = /(^[ \t]*)?\{%(-?)\s*raw\s*(-?)%\}/m
const endRawTag = /\{%(-?)\s*endraw\s*(-?)%\}/

const asLiteral = (text: string): string => JSON.stringify(text).replace(/[{}%#]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)

/** Raw blocks, which the package does not know, as string literals. */
const withoutRawBlocks = (source: string): string => {
  let result = ""
  let rest = source
  for (let open = rawTag.exec(rest); open !== null; open = rawTag.exec(rest)) {
    const body = rest.slice(open.index + open[0].length)
    const close = endRawTag.exec(body)
    if (close === null) throw new JinjaError("raw without endraw")
    let text = body.slice(0, close.index)
    text = open[3] === "-" ? text.trimStart() : text.replace(/^\n/, "")
    text = close[1] === "-" ? text.trimEnd() : text.replace(/(^|\n)[ \t]*$/, "$1")
    result += `${rest.slice(0, open.index)}{{${open[2]} ${asLiteral(text)} ${close[2]}}}`
    rest = body.slice(close.index + close[0].length)
    if (close[2] !== "-") rest = rest.replace(/^\n/, "")
  }
  return result + rest
}

const closing: Readonly<Partial<Record<TokenType, TokenType>>> = {
  OpenParen: "CloseParen",
  OpenSquareBracket: "CloseSquareBracket",
  OpenCurlyBracket: "CloseCurlyBracket"
}

/** Index after the bracket that closes the one at `start`. */
const afterGroup = (tokens: ReadonlyArray<Token>, start: number): number => {
  const expected: Array<TokenType> = []
  for (let i = start; i < tokens.length; i++) {
    const type = tokens[i]?.type
    const close = type === undefined ? undefined : closing[type]
    if (close !== undefined) expected.push(close)
    else if (type === expected.at(-1)) expected.pop()
    if (expected.length === 0) return i + 1
  }
  return tokens.length
}

const notAnArgument = new Set(["and", "or", "else", "if", "in", "is", "not", "recursive"])
const literals: ReadonlySet<TokenType> = new Set<TokenType>(["NumericLiteral", "StringLiteral"])

/** Index after the primary expression with its member accesses that starts at `start`; `start` when none does. */
const afterOperand = (tokens: ReadonlyArray<Token>, start: number): number => {
  const first = tokens[start]
  if (first === undefined) return start
  let at = start
  if (closing[first.type] !== undefined) at = afterGroup(tokens, start)
  else if (literals.has(first.type) || (first.type === "Identifier" && !notAnArgument.has(first.value))) at = start + 1
  else return start
  for (let type = tokens[at]?.type;; type = tokens[at]?.type) {
    if (type === "Dot") at += 2
    else if (type === "OpenParen" || type === "OpenSquareBracket") at = afterGroup(tokens, at)
    else return at
  }
}

const isWord = (candidate: Token | undefined, value: string): boolean => candidate?.type === "Identifier" && candidate.value === value

/** Tokens of `a = x, b = y` as those of `{"a": x, "b": y}`. */
const assignments = (tokens: ReadonlyArray<Token>): Array<Token> => {
  const result = [token("OpenCurlyBracket", "{")]
  let at = 0
  while (at < tokens.length) {
    const name = tokens[at]
    if (name?.type !== "Identifier" || tokens[at + 1]?.type !== "Equals") throw new JinjaError("with needs assignments")
    let end = at + 2
    while (end < tokens.length && tokens[end]?.type !== "Comma") {
      end = closing[tokens[end]?.type ?? "Comma"] === undefined ? end + 1 : afterGroup(tokens, end)
    }
    result.push(token("StringLiteral", name.value), token("Colon", ":"), ...rewritten(tokens.slice(at + 2, end)), token("Comma", ","))
    at = end + 1
  }
  return [...result, token("CloseCurlyBracket", "}")]
}

/**
 * Tokens with what the parser lacks said in what it has: numbers with an exponent, tests with an argument (as filters), `with` (as a loop over
 * its assignments). `recursive` is dropped: every `loop` can be called.
 */
const rewritten = (tokens: ReadonlyArray<Token>): Array<Token> => {
  const result: Array<Token> = []
  let inFor = false
  let at = 0
  while (at < tokens.length) {
    const current = tokens[at]
    const next = tokens[at + 1]
    if (current === undefined) break
    if (current.type === "OpenStatement" && next?.type === "Identifier") {
      inFor = next.value === "for"
      if (next.value === "with") {
        const end = tokens.findIndex((candidate, index) => index > at && candidate.type === "CloseStatement")
        if (end < 0) throw new JinjaError("with is not closed")
        result.push(current, token("Identifier", "for"), token("Identifier", withVariable), token("Identifier", "in"))
        result.push(...assignments(tokens.slice(at + 2, end)))
        at = end
        continue
      }
      if (next.value === "endwith") {
        result.push(current, token("Identifier", "endfor"))
        at += 2
        continue
      }
    } else if (current.type === "NumericLiteral" && next?.type === "Identifier" && /^e\d*$/i.test(next.value)) {
      const signed = next.value.length === 1
      const mantissa = current.value.includes(".") ? current.value : `${current.value}.0`
      const exponent = signed ? `e${tokens[at + 2]?.value ?? ""}${tokens[at + 3]?.value ?? ""}` : next.value
      result.push(token("NumericLiteral", mantissa + exponent))
      at += signed ? 4 : 2
      continue
    } else if (isWord(current, "recursive") && inFor && next?.type === "CloseStatement" && !isWord(tokens[at - 1], "in")) {
      at++
      continue
    } else if (isWord(current, "is") && result.at(-1)?.type !== "Dot") {
      const negated = isWord(next, "not")
      const name = tokens[at + (negated ? 2 : 1)]
      const start = at + (negated ? 3 : 2)
      const end = afterOperand(tokens, start)
      if (name?.type === "Identifier" && end > start) {
        const argument = rewritten(tokens.slice(start, end))
        result.push(token("Pipe", "|"), token("Identifier", (negated ? negatedTestPrefix : testPrefix) + name.value))
        result.push(
          ...(tokens[start]?.type === "OpenParen" ? argument : [token("OpenParen", "("), ...argument, token("CloseParen", ")")])
        )
        at = end
        continue
      }
    }
    result.push(current)
    at++
  }
  return result
}

/** Parses a template with the settings of transformers. Throws an Error whose message has one line. */
export const parseTemplate = (source: string): ReadonlyArray<Node> => {
  if (source.length > maximumSize) throw new JinjaError(`the template is longer than ${maximumSize} characters`)
  if (tooMuchSpace.test(source)) throw new JinjaError("the template has more than 1000 white-space characters in a row")
  const tokens = tokenize(withoutRawBlocks(source), { lstrip_blocks: true, trim_blocks: true })
  const program = parse(rewritten(tokens)) as Program
  return program.body
}
