import { globals } from "./Globals.ts"
import { type Text, TextBuilder } from "./MarkedText.ts"
import { BudgetError, Run, type RunOptions } from "./Run.ts"
import { Scope } from "./Scope.ts"
import { compileBlock } from "./Statements.ts"
import { parseTemplate } from "./Syntax.ts"
import { JinjaError, type Value } from "./Values.ts"

const oneLine = (message: string): string => message.replace(/\s+/g, " ").trim().slice(0, 400)

const failure = (cause: unknown): JinjaError => {
  if (cause instanceof BudgetError) return cause
  if (cause instanceof JinjaError) return new JinjaError(oneLine(cause.message))
  if (cause instanceof RangeError) return new JinjaError("the chat template or its input is nested too deeply or too large")
  return new JinjaError(cause instanceof Error ? oneLine(cause.message) : "the chat template failed")
}

/**
 * A chat template as Python's Jinja renders it in transformers (its environment, filters, functions and text of values). The syntax comes from
 * @huggingface/jinja, whose own evaluation differs from Python in many places; this one compiles the tree to functions over Python's values.
 * `new` and `render` throw a JinjaError with a message of one line.
 */
export class JinjaTemplate {
  readonly #render: (scope: Scope, out: TextBuilder) => unknown

  constructor(source: string) {
    try {
      this.#render = compileBlock(parseTemplate(source))
    } catch (cause) {
      // the package's parser reads past the last token of an unfinished template
      throw cause instanceof TypeError ? new JinjaError("unexpected end of the template") : failure(cause)
    }
  }

  render(variables: Iterable<readonly [string, Value]>, options: RunOptions): Text {
    const base = new Scope(new Run(options))
    for (const [name, value] of globals) base.set(name, value)
    for (const [name, value] of variables) base.set(name, value)
    const out = new TextBuilder()
    try {
      this.#render(base.child(), out)
      return out.finish()
    } catch (cause) {
      throw failure(cause)
    }
  }
}
