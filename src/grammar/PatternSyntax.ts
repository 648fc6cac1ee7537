import * as CharacterSets from "./CharacterSets.ts"
import * as CodePoints from "./CodePoints.ts"
import type { Reason } from "./GrammarError.ts"
import * as Regular from "./Regular.ts"

/** A regular expression as it is written, with the assertions that `Pattern` turns into plain languages. */
export type Pattern =
  | { readonly _tag: "Plain"; readonly language: Regular.Regular }
  | { readonly _tag: "Start" | "End" }
  | { readonly _tag: "Look"; readonly item: Pattern; readonly negative: boolean }
  | { readonly _tag: "Sequence" | "Choice"; readonly items: ReadonlyArray<Pattern> }
  | { readonly _tag: "Repeat"; readonly item: Pattern; readonly min: number; readonly max: number }

export interface PatternOptions {
  /** `ecma`: ECMA-262 with the flag u, and the harmless escapes of Annex B. `python`: also `(?P<name>…)`, `\A`, `\Z`; `.` stops at LF only. */
  readonly dialect: "ecma" | "python"
  readonly ignoreCase?: boolean
  readonly dotAll?: boolean
  /** Where the expression is a part of a larger text, whose ends it cannot see: anchors and lookaheads are refused. */
  readonly embedded?: boolean
}

/** Reports what is wrong at an offset of the source. */
export type Fail = (reason: Reason, message: string, offset: number) => never

const deepestGroup = 200
const mostCharacters = 20_000
const mostAssertions = 64
const mostRepetitions = 1_000_000

const plain = (language: Regular.Regular): Pattern => ({ _tag: "Plain", language })

const control: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", v: "\v", f: "\f" }

/** Reads a regular expression; `fail` gets everything that is malformed or that no regular language says. */
export const parse = (source: string, options: PatternOptions, fail: Fail): Pattern => new Parser(source, options, fail).pattern()

class Parser {
  readonly #source: string
  readonly #fail: Fail
  readonly #dialect: PatternOptions["dialect"]
  readonly #embedded: boolean
  #ignoreCase: boolean
  #dotAll: boolean
  #at = 0
  #depth = 0
  #assertions = 0

  constructor(source: string, options: PatternOptions, fail: Fail) {
    this.#source = source
    this.#fail = fail
    this.#dialect = options.dialect
    this.#embedded = options.embedded ?? false
    this.#ignoreCase = options.ignoreCase ?? false
    this.#dotAll = options.dotAll ?? false
  }

  pattern(): Pattern {
    if (this.#source.length > mostCharacters) this.#fail("TooLarge", `the expression is longer than ${mostCharacters} characters`, 0)
    const pattern = this.#choice()
    if (this.#at < this.#source.length) this.#invalid("a group ends that was not begun")
    return pattern
  }

  #invalid(message: string, offset = this.#at): never {
    return this.#fail("Invalid", message, offset)
  }

  #unsupported(what: string, offset: number): never {
    return this.#fail("Unsupported", `${what} cannot be enforced`, offset)
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #choice(): Pattern {
    if (++this.#depth > deepestGroup) this.#fail("TooLarge", `groups are nested deeper than ${deepestGroup}`, this.#at)
    const branches = [this.#sequence()]
    while (this.#take("|")) branches.push(this.#sequence())
    this.#depth--
    return branches.length === 1 && branches[0] !== undefined ? branches[0] : { _tag: "Choice", items: branches }
  }

  #sequence(): Pattern {
    const items: Array<Pattern> = []
    let run: Array<Regular.Regular> = []
    const endRun = (): void => {
      if (run.length > 0) items.push(plain(Regular.sequence(run)))
      run = []
    }
    while (this.#at < this.#source.length && this.#source[this.#at] !== "|" && this.#source[this.#at] !== ")") {
      const term = this.#term()
      if (term._tag === "Plain") run.push(term.language)
      else {
        endRun()
        items.push(term)
      }
    }
    endRun()
    return items.length === 1 && items[0] !== undefined ? items[0] : { _tag: "Sequence", items }
  }

  #term(): Pattern {
    const start = this.#at
    const atom = this.#atom()
    const quantifier = this.#quantifier()
    if (quantifier === undefined) return atom
    if (atom._tag === "Start" || atom._tag === "End" || atom._tag === "Look") this.#invalid("an assertion cannot be repeated", start)
    if (!this.#take("?") && this.#source[this.#at] === "+") this.#unsupported("a possessive quantifier", this.#at)
    if (this.#quantifier() !== undefined) this.#invalid("a quantifier follows a quantifier")
    const [min, max] = quantifier
    return atom._tag === "Plain" ? plain(Regular.repeat(atom.language, min, max)) : { _tag: "Repeat", item: atom, min, max }
  }

  #quantifier(): readonly [number, number] | undefined {
    if (this.#take("*")) return [0, Infinity]
    if (this.#take("+")) return [1, Infinity]
    if (this.#take("?")) return [0, 1]
    const start = this.#at
    const written = /^\{(\d*)(?:(,)(\d*))?\}/.exec(this.#source.slice(start, start + 32))
    if (written === null || (written[1] === "" && (this.#dialect === "ecma" || written[3] === undefined || written[3] === ""))) {
      return undefined
    }
    this.#at += written[0].length
    const min = Number(written[1])
    const max = written[2] === undefined ? min : written[3] === "" || written[3] === undefined ? Infinity : Number(written[3])
    if (min > max) this.#invalid("the numbers of a quantifier are out of order", start)
    if (min > mostRepetitions || (max !== Infinity && max > mostRepetitions)) {
      this.#fail("TooLarge", `a quantifier repeats more than ${mostRepetitions} times`, start)
    }
    return [min, max]
  }

  #atom(): Pattern {
    const start = this.#at
    const character = this.#next()
    switch (character) {
      case "^":
        return this.#assertion({ _tag: "Start" }, start)
      case "$":
        return this.#assertion({ _tag: "End" }, start)
      case ".":
        return plain(Regular.characters(this.#dot()))
      case "(":
        return this.#group(start)
      case "[":
        return plain(Regular.characters(this.#class(start)))
      case "\\":
        return this.#escape(start)
      case "*":
      case "+":
      case "?":
        return this.#invalid("there is nothing to repeat", start)
      default:
        return plain(this.#literal(character.codePointAt(0) ?? 0))
    }
  }

  #next(): string {
    const point = this.#source.codePointAt(this.#at)
    if (point === undefined) return this.#invalid("the expression ends too early")
    const character = String.fromCodePoint(point)
    this.#at += character.length
    return character
  }

  #dot(): CodePoints.CodePoints {
    if (this.#dotAll) return CodePoints.all
    return CodePoints.complement(this.#dialect === "ecma" ? CharacterSets.lineTerminators : CodePoints.of([0x0a, 0x0a]))
  }

  #literal(point: number): Regular.Regular {
    return Regular.characters(this.#folded(CodePoints.of([point, point])))
  }

  #folded(points: CodePoints.CodePoints): CodePoints.CodePoints {
    return this.#ignoreCase ? CharacterSets.withoutCase(points) : points
  }

  #group(start: number): Pattern {
    const [ignoreCase, dotAll] = [this.#ignoreCase, this.#dotAll]
    let look: { readonly negative: boolean } | undefined
    if (this.#take("?")) {
      if (this.#take("=")) look = { negative: false }
      else if (this.#take("!")) look = { negative: true }
      else if (this.#take("<=") || this.#take("<!")) this.#unsupported("a lookbehind", start)
      else if (this.#take(">")) this.#unsupported("an atomic group", start)
      else if (this.#take("P=")) this.#unsupported("a backreference", start)
      else if (this.#take("#")) this.#unsupported("a comment group", start)
      else if (this.#take("<") || (this.#dialect === "python" && this.#take("P<"))) this.#groupName()
      else if (!this.#take(":") && this.#flags(start)) return { _tag: "Sequence", items: [] }
    }
    const item = this.#choice()
    if (!this.#take(")")) this.#invalid("a group is not closed", start)
    this.#ignoreCase = ignoreCase
    this.#dotAll = dotAll
    return look === undefined ? item : this.#assertion({ _tag: "Look", item, negative: look.negative }, start)
  }

  #assertion(pattern: Pattern, start: number): Pattern {
    if (this.#embedded) this.#unsupported(pattern._tag === "Look" ? "a lookahead in a terminal" : "an anchor in a terminal", start)
    if (++this.#assertions > mostAssertions) {
      this.#fail("TooLarge", `the expression has more than ${mostAssertions} anchors and lookaheads`, start)
    }
    return pattern
  }

  #groupName(): void {
    const name = /^[\p{ID_Start}$_][\p{ID_Continue}$]*>/u.exec(this.#source.slice(this.#at, this.#at + 256))
    if (name === null) this.#invalid("a group's name is malformed")
    this.#at += name[0].length
  }

  /** Modifiers; true where they stand alone, `(?i)`, and count to the end of the group around them. */
  #flags(start: number): boolean {
    const written = /^([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])/.exec(this.#source.slice(this.#at, this.#at + 16))
    if (written === null || (written[1] === "" && written[2] === undefined)) {
      return this.#invalid("a group begins with an unknown modifier", start)
    }
    for (const [letters, on] of [[written[1] ?? "", true], [written[2] ?? "", false]] as const) {
      for (const letter of letters) {
        if (letter === "i") this.#ignoreCase = on
        else if (letter === "s") this.#dotAll = on
        else if (letter !== "u") this.#unsupported(`the modifier ${letter}`, start)
      }
    }
    this.#at += written[0].length
    return written[3] === ")"
  }

  #escape(start: number): Pattern {
    const kind = this.#source[this.#at] ?? this.#invalid("the expression ends with a backslash", start)
    if (kind === "b" || kind === "B") return this.#unsupported(`the word boundary \\${kind}`, start)
    if ((kind >= "1" && kind <= "9") || kind === "k") return this.#unsupported(`the backreference \\${kind}`, start)
    if (this.#dialect === "python" && (kind === "A" || kind === "Z" || kind === "z")) {
      this.#at++
      return this.#assertion({ _tag: kind === "A" ? "Start" : "End" }, start)
    }
    return plain(Regular.characters(this.#folded(this.#escaped(start))))
  }

  /** What a backslash and the characters after it stand for, within a class and outside. */
  #escaped(start: number): CodePoints.CodePoints {
    const kind = this.#next()
    switch (kind) {
      case "d":
        return CharacterSets.digits
      case "D":
        return CodePoints.complement(CharacterSets.digits)
      case "w":
        return CharacterSets.wordCharacters
      case "W":
        return CodePoints.complement(CharacterSets.wordCharacters)
      case "s":
        return CharacterSets.spaces
      case "S":
        return CodePoints.complement(CharacterSets.spaces)
      case "p":
      case "P":
        return this.#property(kind === "P", start)
      case "x":
        return this.#code(this.#hex(2, start))
      case "u":
        return this.#code(this.#unicode(start))
      case "0":
        return CodePoints.of([0, 0])
      case "c": {
        const letter = this.#next()
        if (!/^[A-Za-z]$/.test(letter)) this.#invalid("\\c wants a letter", start)
        return this.#code((letter.codePointAt(0) ?? 0) % 32)
      }
    }
    const named = control[kind]
    if (named !== undefined) return CodePoints.among(named)
    if (/^[A-Za-z0-9]$/.test(kind)) this.#invalid(`the escape \\${kind} is unknown`, start)
    return CodePoints.among(kind)
  }

  #code(point: number): CodePoints.CodePoints {
    return CodePoints.of([point, point])
  }

  #hex(length: number, start: number): number {
    const written = this.#source.slice(this.#at, this.#at + length)
    if (written.length < length || !/^[0-9a-fA-F]+$/.test(written)) this.#invalid("a hexadecimal escape is malformed", start)
    this.#at += length
    return Number.parseInt(written, 16)
  }

  #unicode(start: number): number {
    if (this.#source[this.#at] === "{") {
      const written = /^\{([0-9a-fA-F]{1,8})\}/.exec(this.#source.slice(this.#at, this.#at + 12))
      const point = written === null ? Infinity : Number.parseInt(written[1] ?? "", 16)
      if (written === null || point > 0x10ffff) return this.#invalid("a Unicode escape is malformed", start)
      this.#at += written[0].length
      return point
    }
    const first = this.#hex(4, start)
    if (first < 0xd800 || first > 0xdbff || !/^\\u[dD][c-fC-F]/.test(this.#source.slice(this.#at, this.#at + 4))) return first
    this.#at += 2
    return 0x10000 + ((first & 0x3ff) << 10) + (this.#hex(4, start) & 0x3ff)
  }

  #property(negative: boolean, start: number): CodePoints.CodePoints {
    const written = /^\{([^}]{1,64})\}/.exec(this.#source.slice(this.#at, this.#at + 66))
    const points = written === null ? undefined : CharacterSets.unicodeProperty(written[1] ?? "")
    if (written === null || points === undefined) return this.#invalid("the Unicode property is unknown", start)
    this.#at += written[0].length
    return negative ? CodePoints.complement(points) : points
  }

  #class(start: number): CodePoints.CodePoints {
    const negative = this.#take("^")
    const sets: Array<CodePoints.CodePoints> = []
    let first = this.#dialect === "python"
    for (;;) {
      if (this.#at >= this.#source.length) this.#invalid("a character class is not closed", start)
      if (!first && this.#take("]")) break
      first = false
      const from = this.#member()
      const dash = this.#at
      if (!this.#take("-")) {
        sets.push(from)
        continue
      }
      if (this.#source[this.#at] === "]") {
        sets.push(from, CodePoints.among("-"))
        continue
      }
      const to = this.#member()
      const [low, high] = [singleOf(from), singleOf(to)]
      if (low === undefined || high === undefined) sets.push(from, CodePoints.among("-"), to)
      else if (low > high) this.#invalid("a range of characters is out of order", dash)
      else sets.push(CodePoints.of([low, high]))
    }
    const points = this.#folded(CodePoints.union(...sets))
    return negative ? CodePoints.complement(points) : points
  }

  #member(): CodePoints.CodePoints {
    const start = this.#at
    const character = this.#next()
    if (character !== "\\") return CodePoints.among(character)
    if (this.#take("b")) return CodePoints.of([8, 8])
    return this.#escaped(start)
  }
}

const singleOf = (points: CodePoints.CodePoints): number | undefined => {
  const [range] = points
  return points.length === 1 && range !== undefined && range[0] === range[1] ? range[0] : undefined
}
