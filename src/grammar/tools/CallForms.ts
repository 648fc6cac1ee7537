import type { Tool } from "../../domain/Tool.ts"
import { toolParameters } from "../../domain/ToolParameters.ts"
import type { GrammarBuilder } from "../GrammarBuilder.ts"
import { GrammarError } from "../GrammarError.ts"
import * as Ir from "../Ir.ts"
import { compileArgumentsInto, compileInto } from "../JsonSchema.ts"
import type { ArgumentsLayout, ValueLayout } from "../ValueLayout.ts"
import { GemmaLayout } from "./GemmaLayout.ts"
import type { InputNodes } from "./InputGrammar.ts"
import { PythonLayout } from "./PythonLayout.ts"
import { bareNames, plainText, TaggedJsonLayout, unmistakable } from "./TextValues.ts"

/** What a form needs to write calls as one model does. */
export interface FormContext {
  readonly builder: GrammarBuilder
  /** An earlier call as the model's template shows it: tool mbxtool, parameter mbxkey. */
  readonly sample: string
  /** A mark of the syntax: one token where the vocabulary has it as such, else its text. */
  readonly mark: (text: string) => Ir.Node
  /** What the arguments say is marked as content. */
  readonly marksContent: boolean
}

/** How one syntax writes calls. */
export interface CallForm {
  /** What begins calls in free text; absent where they stand at its beginning or nowhere. */
  readonly opener?: string
  /** Of syntaxes whose calls begin an answer as they are: what lets them follow a text all the same. */
  readonly tag?: string
  /** How the opener is written, where it is no mark by itself. */
  readonly begin?: Ir.Node
  /** From behind the opener to the end of all calls; `call` are the alternatives for one of them. */
  readonly calls: (call: Ir.Node, most: number | null) => Ir.Node
  /** One call of a tool with these arguments. */
  readonly call: (tool: Tool, values: Ir.Node) => Ir.Node
  /** The arguments that a schema allows. */
  readonly values: (tool: Tool, schema: unknown) => Ir.Node
  /** The one argument `input`, which is a string of a grammar. */
  readonly input: (nodes: InputNodes) => Ir.Node
}

const schemaOptions = ({ marksContent }: FormContext) => ({ closed: true, marksContent })

const several = (call: Ir.Node, separator: Ir.Node, most: number | null): Ir.Node =>
  most === 1 ? call : Ir.sequence(call, Ir.repeat(Ir.sequence(separator, call), 0, most === null ? null : most - 1))

const bareName = ({ name }: Tool, allowed = /^\w[\w.:/-]*$/): string => {
  if (allowed.test(name)) return name
  throw new GrammarError({
    reason: "Unsupported",
    message: `a tool named ${JSON.stringify(name)} cannot be called in this model's syntax`,
    path: ""
  })
}

/** White space that the sample has at the place of the group. */
const gap = (sample: string, place: RegExp, usual: string): string => place.exec(sample)?.[1] ?? usual

/** Arguments as one JSON object. */
const jsonArguments = (context: FormContext): Pick<CallForm, "input" | "values"> => ({
  values: (_tool, schema) => compileInto(context.builder, schema, schemaOptions(context)),
  input: ({ escaped }) => Ir.sequence(Ir.text("{\"input\": \""), escaped(), Ir.text("\"}"))
})

const hermes = (context: FormContext): CallForm => {
  const { mark, sample } = context
  const inner = gap(sample, /<tool_call>(\s*)\{/, "\n")
  const after = gap(sample, /\}(\s*)<\/tool_call>/, "\n")
  return {
    ...jsonArguments(context),
    opener: "<tool_call>",
    calls: (call, most) => several(call, Ir.sequence(Ir.text("\n"), mark("<tool_call>")), most),
    call: (tool, values) =>
      Ir.sequence(
        Ir.text(`${inner}{"name": ${JSON.stringify(tool.name)}, "arguments": `),
        values,
        Ir.text(`}${after}`),
        mark("</tool_call>")
      )
  }
}

interface TaggedOptions {
  readonly closer: string
  readonly argument: (key: Ir.Node, value: Ir.Node) => Ir.Node
  /** Names of parameters that can be written. */
  readonly keys?: RegExp
  /** What stands before a value and says whether it is a string. Absent: the types of the parameter say it. */
  readonly marks?: { readonly string: string; readonly other: string }
}

/** Arguments between tags; strings stand there as they are. */
const taggedArguments = (
  context: FormContext,
  { argument, closer, keys = /^[^<>\s](?:[^<>\n]*[^<>\s])?$/, marks }: TaggedOptions
): Pick<CallForm, "input" | "values"> => {
  const marked = (text: Ir.Node) => marks === undefined ? text : Ir.sequence(Ir.text(marks.string), text)
  return {
    values: (tool, schema) => {
      const parameters = toolParameters([{ ...tool, parameters: schema }], tool.name)
      const layout: ArgumentsLayout = {
        separator: Ir.text(""),
        argument: (names, value) => argument(bareNames(names, "word", keys), value(names._tag === "Text" ? names.text : undefined)),
        text: (name) => {
          // Where nothing marks it, a parameter without a name of its own has no types of its own either, and is read as text.
          const only = marks === undefined && (name === undefined || parameters.isText(name))
          const plain = only || marks !== undefined || name === undefined
          return {
            only,
            ...(marks === undefined ? {} : { other: (value) => Ir.sequence(Ir.text(marks.other), value) }),
            string: (language) => {
              const text = plainText(plain ? language : unmistakable(language, parameters.types(name)), closer)
              return marked(context.marksContent ? Ir.content(text) : text)
            }
          }
        }
      }
      return compileArgumentsInto(context.builder, schema, layout, { ...schemaOptions(context), layout: new TaggedJsonLayout(closer) })
    },
    input: ({ raw }) => argument(Ir.text("input"), marked(raw(closer)))
  }
}

const qwenXml = (context: FormContext): CallForm => ({
  ...taggedArguments(context, {
    closer: "</parameter>",
    argument: (key, value) => Ir.sequence(Ir.text("<parameter="), key, Ir.text(">\n"), value, Ir.text("\n</parameter>\n"))
  }),
  opener: "<tool_call>",
  calls: (call, most) => several(call, Ir.sequence(Ir.text("\n"), context.mark("<tool_call>")), most),
  call: (tool, values) =>
    Ir.sequence(
      Ir.text(`\n<function=${bareName(tool, /^[^\s>]+$/)}>\n`),
      values,
      Ir.text("</function>\n"),
      context.mark("</tool_call>")
    )
})

const deepSeekDsml = (context: FormContext): CallForm => {
  const token = "｜DSML｜"
  const tag = (text: string, before = "<") => Ir.sequence(Ir.text(before), context.mark(token), Ir.text(text))
  const wrapper = gap(context.sample, /<｜DSML｜(\w+)>\s*<｜DSML｜invoke/, "function_calls")
  return {
    ...taggedArguments(context, {
      closer: `</${token}parameter>`,
      keys: /^[^"\n]+$/,
      marks: { string: "string=\"true\">", other: "string=\"false\">" },
      argument: (key, value) => Ir.sequence(tag("parameter name=\""), key, Ir.text("\" "), value, tag("parameter>\n", "</"))
    }),
    opener: `<${token}`,
    begin: tag(""),
    calls: (call, most) => Ir.sequence(Ir.text(`${wrapper}>\n`), several(call, Ir.text(""), most), tag(`${wrapper}>`, "</")),
    call: (tool, values) => Ir.sequence(tag(`invoke name="${bareName(tool, /^[^"\n]+$/)}">\n`), values, tag("invoke>\n", "</"))
  }
}

const argPairs = (context: FormContext): CallForm => {
  const { mark, sample } = context
  const between = gap(sample, /mbxtool(\s*)<arg_key>/, "\n")
  return {
    ...taggedArguments(context, {
      closer: "</arg_value>",
      argument: (key, value) =>
        Ir.sequence(
          mark("<arg_key>"),
          key,
          mark("</arg_key>"),
          Ir.text(between),
          mark("<arg_value>"),
          value,
          mark("</arg_value>"),
          Ir.text(between)
        )
    }),
    opener: "<tool_call>",
    calls: (call, most) => several(call, Ir.sequence(Ir.text(between), mark("<tool_call>")), most),
    call: (tool, values) => Ir.sequence(Ir.text(bareName(tool) + between), values, mark("</tool_call>"))
  }
}

const inValues = (separator: Ir.Node, values: ValueLayout): ArgumentsLayout => ({
  separator,
  argument: (names, value) => values.property(values.key(names), value(undefined))
})

const gemma4 = (context: FormContext): CallForm => {
  const { builder, mark } = context
  const quote = mark("<|\"|>")
  const layout = new GemmaLayout(quote)
  return {
    values: (_tool, schema) => compileArgumentsInto(builder, schema, inValues(layout.comma, layout), { ...schemaOptions(context), layout }),
    input: ({ raw }) => Ir.sequence(Ir.text("input:"), quote, raw("<|\"|>"), quote),
    opener: "<|tool_call>",
    calls: (call, most) => several(call, mark("<|tool_call>"), most),
    call: (tool, values) =>
      Ir.sequence(
        Ir.text(`call:${bareName(tool)}{`),
        values,
        Ir.text("}"),
        mark("<tool_call|>")
      )
  }
}

const mistralArray = (context: FormContext): CallForm => {
  return {
    ...jsonArguments(context),
    opener: "[TOOL_CALLS]",
    calls: (call, most) =>
      Ir.sequence(Ir.text(`${gap(context.sample, /\[TOOL_CALLS\](\s*)\[/, "")}[`), several(call, Ir.text(", "), most), Ir.text("]")),
    call: (tool, values) => Ir.sequence(Ir.text(`{"name": ${JSON.stringify(tool.name)}, "arguments": `), values, Ir.text("}"))
  }
}

const mistralArguments = (context: FormContext): CallForm => {
  return {
    ...jsonArguments(context),
    opener: "[TOOL_CALLS]",
    calls: (call, most) => several(call, context.mark("[TOOL_CALLS]"), most),
    call: (tool, values) => Ir.sequence(Ir.text(bareName(tool)), context.mark("[ARGS]"), values)
  }
}

const deepSeek = (context: FormContext): CallForm => {
  const { mark } = context
  const fenced = context.sample.includes("function<｜tool▁sep｜>")
  return {
    ...jsonArguments(context),
    opener: "<｜tool▁calls▁begin｜>",
    calls: (call, most) => Ir.sequence(several(call, Ir.text(fenced ? "\n" : ""), most), mark("<｜tool▁calls▁end｜>")),
    call: (tool, values) => {
      const name = bareName(tool)
      const body = fenced
        ? [Ir.text("function"), mark("<｜tool▁sep｜>"), Ir.text(`${name}\n\`\`\`json\n`), values, Ir.text("\n```")]
        : [Ir.text(name), mark("<｜tool▁sep｜>"), values]
      return Ir.sequence(mark("<｜tool▁call▁begin｜>"), ...body, mark("<｜tool▁call▁end｜>"))
    }
  }
}

const pythonTag = "<|python_tag|>"

const llama3Json = (context: FormContext): CallForm => {
  return {
    ...jsonArguments(context),
    tag: pythonTag,
    calls: (call, most) => several(call, Ir.text("; "), most),
    call: (tool, values) => Ir.sequence(Ir.text(`{"name": ${JSON.stringify(tool.name)}, "parameters": `), values, Ir.text("}"))
  }
}

const llama3Pythonic = (context: FormContext): CallForm => {
  const { builder } = context
  const layout = new PythonLayout()
  const own: ArgumentsLayout = {
    separator: layout.comma,
    argument: (names, value) => Ir.sequence(bareNames(names, "identifier", /^[A-Za-z_]\w*$/), Ir.text("="), value(undefined))
  }
  return {
    tag: pythonTag,
    values: (_tool, schema) => compileArgumentsInto(builder, schema, own, { ...schemaOptions(context), layout }),
    input: ({ escaped }) => Ir.sequence(Ir.text("input=\""), escaped(), Ir.text("\"")),
    calls: (call, most) => Ir.sequence(Ir.text("["), several(call, Ir.text(", "), most), Ir.text("]")),
    call: (tool, values) => Ir.sequence(Ir.text(`${bareName(tool)}(`), values, Ir.text(")"))
  }
}

const harmony = (context: FormContext): CallForm => {
  const { mark } = context
  return {
    ...jsonArguments(context),
    calls: (call) => call,
    call: (tool, values) =>
      Ir.sequence(
        mark("<|channel|>"),
        Ir.text(`commentary to=functions.${bareName(tool, /^[^\s<]+$/)} `),
        mark("<|constrain|>"),
        Ir.text("json"),
        mark("<|message|>"),
        values
      )
  }
}

const forms: Readonly<Record<string, (context: FormContext) => CallForm>> = {
  "arg-pairs": argPairs,
  deepseek: deepSeek,
  "deepseek-dsml": deepSeekDsml,
  gemma4,
  generic: hermes,
  harmony,
  hermes,
  "llama3-json": llama3Json,
  "llama3-pythonic": llama3Pythonic,
  "mistral-args": mistralArguments,
  "mistral-array": mistralArray,
  "qwen-xml": qwenXml
}

/** How the syntax of this name writes calls; undefined for a name that is none. */
export const callForm = (syntax: string, context: FormContext): CallForm | undefined => forms[syntax]?.(context)

/** Free text that nothing limits. */
export const anyText = (except: ReadonlyArray<string> = []): Ir.Node => ({
  kind: "free",
  until: [],
  ...(except.length === 0 ? {} : { except })
})
