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

/** The loop variable that stands for a `with` block; the filter names that stand for a tuple of a list's items and for tests with an argument. */
export const withVariable = " with"
export const tupleFilter = " tuple"
export const testPrefix = "is "
export const negatedTestPrefix = "is not "

const maximumSize = 262_144
// The package matches `\s*` before tags, in time that grows with the square of a run of white space; real templates have runs below 40.
const tooMuchSpace = /\s{400}/

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
    if (open[3] === "-") text = text.trimStart()
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

/** For every opening bracket, the index after the one that closes it. */
const groupEnds = (tokens: ReadonlyArray<Token>): ReadonlyMap<number, number> => {
  const ends = new Map<number, number>()
  const open: Array<readonly [index: number, close: TokenType]> = []
  tokens.forEach(({ type }, index) => {
    const close = closing[type]
    if (close !== undefined) open.push([index, close])
    else if (type === open.at(-1)?.[1]) ends.set(open.pop()?.[0] ?? 0, index + 1)
  })
  return ends
}

const isWord = (candidate: Token | undefined, value: string): boolean => candidate?.type === "Identifier" && candidate.value === value

const notAnArgument = new Set(["and", "or", "else", "if", "in", "is", "not", "recursive"])
const keywords = new Set(["and", "or", "not", "in", "is", "if", "else", "elif", "set", "for", "call", "with"])

/** Whether a parenthesis after this token groups an expression and is no call. */
const groups = (before: Token | undefined): boolean =>
  before === undefined ||
  !(before.type === "CloseParen" || before.type === "CloseSquareBracket" || (before.type === "Identifier" && !keywords.has(before.value)))

/**
 * Says with the parser's own tokens what it lacks: numbers with an exponent, tuples that are empty or end in a comma, tests with an argument (as
 * filters), `with` (as a loop over its assignments). `recursive` is dropped: every `loop` can be called.
 */
class Rewriter {
  readonly result: Array<Token> = []
  readonly #tokens: ReadonlyArray<Token>
  readonly #ends: ReadonlyMap<number, number>
  #inFor = false

  constructor(tokens: ReadonlyArray<Token>) {
    this.#tokens = tokens
    this.#ends = groupEnds(tokens)
    this.#rewrite(0, tokens.length)
  }

  #rewrite(start: number, end: number): void {
    let at = start
    while (at < end) at = this.#construct(at)
  }

  /** Copies or replaces what begins at `at`; the index after it. */
  #construct(at: number): number {
    const current = this.#tokens[at]
    const next = this.#tokens[at + 1]
    if (current?.type === "OpenStatement" && next?.type === "Identifier") {
      this.#inFor = next.value === "for"
      if (next.value === "with") return this.#with(at)
      if (next.value === "endwith") return this.#put(at + 2, current, token("Identifier", "endfor"))
    } else if (current?.type === "NumericLiteral" && next?.type === "Identifier" && /^e\d*$/i.test(next.value)) {
      const signed = next.value.length === 1
      const mantissa = current.value.includes(".") ? current.value : `${current.value}.0`
      const exponent = signed ? `e${this.#tokens[at + 2]?.value ?? ""}${this.#tokens[at + 3]?.value ?? ""}` : next.value
      return this.#put(at + (signed ? 4 : 2), token("NumericLiteral", mantissa + exponent))
    } else if (current?.type === "OpenParen" && groups(this.result.at(-1))) {
      const end = this.#ends.get(at) ?? at
      if (end === at + 2 || this.#tokens[end - 2]?.type === "Comma") return this.#tuple(at, end)
    } else if (isWord(current, "recursive") && this.#inFor && next?.type === "CloseStatement" && !isWord(this.#tokens[at - 1], "in")) {
      return at + 1
    } else if (isWord(current, "is") && this.result.at(-1)?.type !== "Dot") {
      return this.#test(at)
    }
    return current === undefined ? at + 1 : this.#put(at + 1, current)
  }

  #put(after: number, ...tokens: ReadonlyArray<Token>): number {
    this.result.push(...tokens)
    return after
  }

  #tuple(at: number, end: number): number {
    this.result.push(token("OpenParen", "("), token("OpenSquareBracket", "["))
    this.#rewrite(at + 1, end - 1)
    this.result.push(token("CloseSquareBracket", "]"), token("Pipe", "|"), token("Identifier", tupleFilter))
    return this.#put(end, token("CloseParen", ")"))
  }

  #test(at: number): number {
    const negated = isWord(this.#tokens[at + 1], "not")
    const name = this.#tokens[at + (negated ? 2 : 1)]
    const start = at + (negated ? 3 : 2)
    const end = this.#afterOperand(start)
    if (name?.type !== "Identifier" || end === start) return this.#put(at + 1, token("Identifier", "is"))
    this.result.push(token("Pipe", "|"), token("Identifier", (negated ? negatedTestPrefix : testPrefix) + name.value))
    const isCall = this.#tokens[start]?.type === "OpenParen"
    if (!isCall) this.result.push(token("OpenParen", "("))
    this.#rewrite(start, end)
    return isCall ? end : this.#put(end, token("CloseParen", ")"))
  }

  /** Index after the primary expression with its member accesses that starts at `start`; `start` when none does. */
  #afterOperand(start: number): number {
    const first = this.#tokens[start]
    if (first === undefined) return start
    let at = start + 1
    if (closing[first.type] !== undefined) at = this.#ends.get(start) ?? start
    else if (
      first.type === "Identifier"
        ? notAnArgument.has(first.value)
        : first.type !== "NumericLiteral" && first.type !== "StringLiteral"
    ) {
      return start
    }
    for (let type = this.#tokens[at]?.type;; type = this.#tokens[at]?.type) {
      if (type === "Dot") at += 2
      else if (type === "OpenParen" || type === "OpenSquareBracket") at = this.#ends.get(at) ?? this.#tokens.length
      else return at
    }
  }

  /** `with a = x, b = y` as `for … in {"a": x, "b": y}`. */
  #with(start: number): number {
    let at = start + 2
    this.result.push(token("OpenStatement", "{%"), token("Identifier", "for"), token("Identifier", withVariable), token("Identifier", "in"))
    this.result.push(token("OpenCurlyBracket", "{"))
    while (this.#tokens[at]?.type !== "CloseStatement") {
      const name = this.#tokens[at]
      if (name?.type !== "Identifier" || this.#tokens[at + 1]?.type !== "Equals") throw new JinjaError("with needs assignments")
      let end = at + 2
      for (let type = this.#tokens[end]?.type; type !== "Comma" && type !== "CloseStatement"; type = this.#tokens[end]?.type) {
        if (type === undefined) throw new JinjaError("with is not closed")
        end = this.#ends.get(end) ?? end + 1
      }
      this.result.push(token("StringLiteral", name.value), token("Colon", ":"))
      this.#rewrite(at + 2, end)
      this.result.push(token("Comma", ","))
      at = this.#tokens[end]?.type === "Comma" ? end + 1 : end
    }
    return this.#put(at, token("CloseCurlyBracket", "}"))
  }
}

/** Parses a template with the settings of transformers. Throws an Error whose message has one line. */
export const parseTemplate = (source: string): ReadonlyArray<Node> => {
  if (source.length > maximumSize) throw new JinjaError(`the template is longer than ${maximumSize} characters`)
  if (tooMuchSpace.test(source)) throw new JinjaError("the template has 400 white-space characters in a row")
  const tokens = tokenize(withoutRawBlocks(source), { lstrip_blocks: true, trim_blocks: true })
  const program = parse(new Rewriter(tokens).result) as Program
  return program.body
}
