import type { Result } from "effect"
import type { OutputFormat } from "../../domain/OutputFormat.ts"
import type { Tool } from "../../domain/Tool.ts"
import { GrammarBuilder } from "../GrammarBuilder.ts"
import { attempt, GrammarError } from "../GrammarError.ts"
import * as Ir from "../Ir.ts"
import { formatNode } from "../OutputGrammar.ts"
import { bareText } from "./BareCalls.ts"
import { anyText, type CallForm, callForm } from "./CallForms.ts"
import { inputNodes } from "./InputGrammar.ts"

export interface CallGrammarOptions {
  /** Name of the syntax. */
  readonly syntax: string
  /** An earlier call as the model's template shows it: tool mbxtool, parameter mbxkey. */
  readonly sample: string
  /** Those that may be called; at least one, or a format. */
  readonly tools: ReadonlyArray<Tool>
  /** Whether the output has to be calls, or may be text with calls in it. */
  readonly required: boolean
  /** What the answer is where it is no call, and then nothing else; absent: any text, which calls may stand in. */
  readonly format?: OutputFormat
  /** Whether there may be several calls. */
  readonly parallel: boolean
  /** Tags of reasoning that may come first. `open` absent: the output begins inside it. */
  readonly reasoning?: { readonly open?: string; readonly close: string }
  /** Messages of reasoning that may come first, where messages have channels; absent: any number, and one before a required call. */
  readonly thoughts?: number
  /** Marks what the arguments say as content, so that the syntax around it can be told from it. */
  readonly marksContent?: boolean
  /** Id of the token that is this text, where the vocabulary has it as a special one. */
  readonly token: (text: string) => number | undefined
}

/** Tools of one request that can be held to their schemas. */
const mostTools = 2048

/** More calls than that in one turn are a model that does not stop. */
const mostCalls = 64

const newlines: Ir.Node = Ir.repeat(Ir.text("\n"), 0, 2)

/** Whether what a tool is called with has to be valid. */
const isHeld = ({ inputGrammar, strict }: Tool): boolean => strict === true || inputGrammar !== undefined

/** What ends a message of gpt-oss, or begins one. */
const bodyTags = ["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"]

class CallGrammar {
  readonly #options: CallGrammarOptions
  readonly #builder = new GrammarBuilder()
  readonly #form: CallForm | undefined

  constructor(options: CallGrammarOptions) {
    this.#options = options
    if (options.tools.length === 0) return
    if (options.tools.length > mostTools) {
      throw new GrammarError({ reason: "TooLarge", message: `more than ${mostTools} tools cannot be enforced`, path: "" })
    }
    const form = callForm(options.syntax, {
      builder: this.#builder,
      sample: options.sample,
      mark: (text) => this.#mark(text),
      marksContent: options.marksContent ?? false
    })
    if (form === undefined) {
      throw new GrammarError({ reason: "Unsupported", message: `calls in the syntax ${options.syntax} cannot be enforced`, path: "" })
    }
    this.#form = form
  }

  compile(): Ir.Grammar {
    const { format, required, syntax } = this.#options
    // What was promised comes first: what is left of the time goes to tools that need not be held to their schemas.
    const promised = this.#promised()
    const answer = format === undefined ? undefined : formatNode(this.#builder, format)
    const calls = this.#calls(promised)
    const root = syntax === "harmony"
      ? this.#channels(calls, answer ?? anyText(bodyTags))
      : answer === undefined || required
      ? Ir.sequence(this.#reasoning(), newlines, required ? this.#begun(calls) : this.#textWith(calls))
      : Ir.sequence(this.#reasoning(), Ir.choice(answer, this.#begun(calls)))
    return this.#builder.finish(root, format === undefined ? "tools" : "format")
  }

  /** The calls of tools whose arguments are promised to be valid. */
  #promised(): ReadonlyMap<Tool, Ir.Node> {
    const form = this.#form
    if (form === undefined) return new Map()
    return new Map(this.#options.tools.filter(isHeld).map((tool) => [tool, this.#inTool(tool, () => this.#heldCall(form, tool))]))
  }

  /** One call or several; nothing where there are no tools. */
  #calls(promised: ReadonlyMap<Tool, Ir.Node>): Ir.Node {
    const { parallel, tools } = this.#options
    const form = this.#form
    if (form === undefined) return Ir.choice()
    const name = this.#builder.fresh("call")
    let any: Ir.Node | undefined
    const anyValues = (tool: Tool) => any ??= form.values({ name: tool.name }, { type: "object" })
    const items = tools.map((tool) =>
      promised.get(tool) ?? this.#inTool(tool, () => form.call(tool, this.#values(form, tool) ?? anyValues(tool)))
    )
    this.#builder.define(name, { kind: "choice", items })
    return form.calls(Ir.rule(name), parallel ? mostCalls : 1)
  }

  #mark(text: string): Ir.Node {
    const token = this.#options.token(text)
    return token === undefined ? Ir.text(text) : { kind: "token", ids: [token] }
  }

  /** Free text up to a mark. As a token of its own the mark may have no text, or be read as text as well: both ways end the text. */
  #upTo(text: string): Ir.Free {
    const token = this.#options.token(text)
    return { kind: "free", until: [text, ...(token === undefined ? [] : [{ tokens: [token] }])] }
  }

  #heldCall(form: CallForm, tool: Tool): Ir.Node {
    const { inputGrammar, parameters = { type: "object" } } = tool
    const values = inputGrammar === undefined
      ? form.values(tool, parameters)
      : form.input(inputNodes(this.#builder, inputGrammar, this.#options.marksContent))
    return form.call(tool, values)
  }

  /** Arguments as the schema of a tool that is not strict allows them; undefined where it cannot be enforced or says nothing. */
  #values(form: CallForm, tool: Tool): Ir.Node | undefined {
    const { parameters } = tool
    if (parameters === undefined) return undefined
    try {
      return this.#builder.budget.optional(() => form.values(tool, parameters))
    } catch (error) {
      if (error instanceof GrammarError) return undefined
      throw error
    }
  }

  /** Errors of what stands in a tool name its place. */
  #inTool(tool: Tool, work: () => Ir.Node): Ir.Node {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof GrammarError)) throw error
      const { message, path, reason } = error
      const place = [tool.field ?? `tools.${tool.name}`, ...(path === "" ? [] : [path])].join(".")
      throw new GrammarError({
        reason,
        message: `${place}: ${path !== "" && message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message}`,
        path: place
      })
    }
  }

  #begun(calls: Ir.Node): Ir.Node {
    const { begin, opener } = this.#form ?? {}
    return opener === undefined ? calls : Ir.sequence(begin ?? this.#mark(opener), calls)
  }

  /** Text in which calls may begin; in bare syntaxes calls, or text that does not begin as they do, up to a tag that lets them follow. */
  #textWith(calls: Ir.Node): Ir.Node {
    const { begin, opener, tag } = this.#form ?? {}
    if (tag !== undefined) {
      const text = this.#options.marksContent === true ? Ir.content(bareText(tag)) : bareText(tag)
      return Ir.choice(calls, text, Ir.sequence(text, this.#mark(tag), calls))
    }
    if (opener === undefined) return anyText()
    const tail = anyText([opener])
    const begun = begin === undefined ? Ir.sequence(this.#upTo(opener), calls) : Ir.sequence(tail, begin, calls)
    return this.#options.parallel ? Ir.sequence(Ir.repeat(begun, 0, mostCalls), tail) : Ir.choice(begun, tail)
  }

  #reasoning(): Ir.Node {
    const { reasoning } = this.#options
    if (reasoning === undefined) return Ir.text("")
    const rest = Ir.sequence(this.#upTo(reasoning.close), newlines)
    return reasoning.open === undefined ? rest : Ir.optional(Ir.sequence(newlines, this.#mark(reasoning.open), rest))
  }

  /** gpt-oss: messages of reasoning and to the user, then the answer or a call, which ends the turn. Before a required call only reasoning. */
  #channels(call: Ir.Node, answer: Ir.Node): Ir.Node {
    const { required, thoughts } = this.#options
    const headed = (channel: string, body: Ir.Node) =>
      Ir.sequence(this.#mark("<|channel|>"), Ir.text(channel), this.#mark("<|message|>"), body)
    const next = Ir.sequence(this.#mark("<|start|>"), Ir.text("assistant"))
    const end: Ir.Node = { ...this.#upTo("<|end|>"), except: bodyTags.filter((tag) => tag !== "<|end|>") }
    const ended = (channel: string) => Ir.sequence(headed(channel, end), next)
    const thought = ended("analysis")
    const thoughtAtMost = (most: number) => most === 0 ? Ir.text("") : Ir.repeat(thought, 0, most)
    if (required) return Ir.sequence(thoughtAtMost(thoughts ?? 1), call)
    const told = ended("commentary")
    const before = thoughts === undefined
      ? Ir.repeat(Ir.choice(thought, told), 0, null)
      : Ir.sequence(thoughtAtMost(thoughts), Ir.repeat(told, 0, null))
    return Ir.sequence(before, Ir.choice(call, headed("final", answer)))
  }
}

/**
 * The outputs of a model that calls tools as its syntax wants, with arguments that satisfy the tools' schemas. What stands inside tags without
 * any escaping holds no closing tag. What the grammar allows, the parser of the syntax reads back as the same calls.
 */
export const compileCalls = (options: CallGrammarOptions): Result.Result<Ir.Grammar, GrammarError> =>
  attempt(() => new CallGrammar(options).compile())
