import { type HarnessOptions, tokensOf } from "../../unit/server/harness.ts"

/** A server that says one text after the other. */
export const says = (...texts: ReadonlyArray<string>): HarnessOptions => ({
  script: { answer: (_request, index) => ({ tokens: tokensOf(texts[index] ?? "") }) }
})

export const model = "demo/model"

/** A tool of the Responses API. */
export const weather = {
  type: "function" as const,
  name: "get_weather",
  description: "Weather of a city",
  strict: false,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}
