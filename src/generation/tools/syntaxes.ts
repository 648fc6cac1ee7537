import { argPairs } from "./ArgPairs.ts"
import { deepSeek } from "./DeepSeek.ts"
import { deepSeekDsml } from "./Dsml.ts"
import { gemma4 } from "./Gemma4.ts"
import { generic } from "./Generic.ts"
import { harmony } from "./Harmony.ts"
import { hermes } from "./Hermes.ts"
import { llama3Json, llama3Pythonic } from "./Llama3.ts"
import { mistralArguments, mistralArray } from "./Mistral.ts"
import { qwenXml } from "./QwenXml.ts"
import type { ToolCallSyntax } from "./ToolCallParser.ts"

/** Every way to write calls that is known, the ones with the most telling marks first; the last matches anything. */
export const syntaxes: ReadonlyArray<ToolCallSyntax> = [
  harmony,
  gemma4,
  deepSeek,
  deepSeekDsml,
  mistralArguments,
  mistralArray,
  qwenXml,
  argPairs,
  hermes,
  llama3Json,
  llama3Pythonic,
  generic
]

export const syntaxNamed = (name: string): ToolCallSyntax | undefined => syntaxes.find((syntax) => syntax.name === name)
