import type { Message } from "../domain/Conversation.ts"
import type { Tool } from "../domain/Tool.ts"
import { arrange } from "./Arrangement.ts"
import { Dict, type Value } from "./jinja/Values.ts"
import type { Preparation } from "./Preparation.ts"
import { messageValue, reasoningFields, toolValues } from "./TemplateInput.ts"

/** Renders messages and tools with the template; undefined where it fails. */
export type Attempt = (messages: ReadonlyArray<Value>, tools: Value) => string | undefined

const tool: Tool = {
  name: "mbxtool",
  description: "mbxdescription",
  parameters: { type: "object", properties: { mbxparameter: { type: "string", description: "mbxtext" } }, required: ["mbxparameter"] }
}

const unionParameters = { type: "object", properties: { mbxparameter: { type: ["string", "null"], description: "mbxtext" } } }

const user = (content: string): Message => ({ role: "user", content })
const system = (content: string): Message => ({ role: "system", content })
const answer = (content: string): Message => ({ role: "assistant", content })
const call = (name: string, id: string) => ({ id, name, arguments: `{"${name}key": "${name}value"}` })
const calling = (content: string | null, ...calls: ReadonlyArray<ReturnType<typeof call>>): Message => ({
  role: "assistant",
  content,
  toolCalls: calls
})
const result = (toolCallId: string, content: string): Message => ({ role: "tool", toolCallId, content })

const has = (text: string | undefined, ...parts: ReadonlyArray<string>): boolean =>
  text !== undefined && parts.every((part) => text.includes(part))

/** What templates of today take; each probe replaces one answer. */
const usual: Preparation = {
  content: "string",
  developer: true,
  system: { leading: true, several: true, late: true, always: true },
  repeats: { user: true, assistant: true },
  emptyAnswers: true,
  tools: true,
  noTools: "null",
  completeTools: false,
  unionTypes: true,
  takesInlineReasoning: false,
  calls: { arguments: "object", emptyContent: "absent", parallel: true, apartFromText: false, withReasoning: true, shortIds: false },
  results: true,
  orphans: true
}

const values = (messages: ReadonlyArray<Message>, preparation: Preparation): Array<Value> =>
  arrange(messages, preparation).map((message) => messageValue(message, preparation))

const callShapes = (["object", "string"] as const).flatMap((shape) =>
  (["absent", "", null] as const).map((emptyContent) => ({ arguments: shape, emptyContent }))
)

type Render = (preparation: Preparation, messages: ReadonlyArray<Message>, tools?: ReadonlyArray<Tool>) => string | undefined

/** Which turns it takes. Each change counts only where it makes the conversation whole. */
const turnsOf = (usual: Preparation, render: Render): Preparation => {
  let found = usual
  const mend = (changed: Preparation, messages: ReadonlyArray<Message>, ...texts: ReadonlyArray<string>) => {
    if (!has(render(found, messages), ...texts) && has(render(changed, messages), ...texts)) found = changed
  }
  mend({ ...found, repeats: { ...found.repeats, user: false } }, [user("mbxuser"), user("mbxagain")], "mbxuser", "mbxagain")
  mend(
    { ...found, repeats: { ...found.repeats, assistant: false } },
    [user("mbxuser"), answer("mbxanswer"), answer("mbxmore"), user("mbxagain")],
    "mbxuser",
    "mbxanswer",
    "mbxmore",
    "mbxagain"
  )
  mend({ ...found, emptyAnswers: false }, [user("mbxuser"), answer(""), user("mbxagain")], "mbxuser", "mbxagain")
  return found
}

/** Finds out what a template takes by rendering small conversations with it. Nothing depends on its name or its source. */
export const probe = (attempt: Attempt): Preparation => {
  const render: Render = (preparation, messages, tools = []) => attempt(values(messages, preparation), toolValues(tools, preparation))
  let found = usual

  if (!has(render(found, [user("mbxuser")]), "mbxuser") && has(render({ ...found, content: "parts" }, [user("mbxuser")]), "mbxuser")) {
    found = { ...found, content: "parts" }
  }
  if (render(found, [user("mbxuser")]) === undefined && has(render({ ...found, noTools: "empty" }, [user("mbxuser")]), "mbxuser")) {
    found = { ...found, noTools: "empty" }
  }

  const leading = has(render(found, [system("mbxsystem"), user("mbxuser")]), "mbxsystem", "mbxuser")
  const several = leading &&
    has(render(found, [system("mbxfirst"), system("mbxsecond"), user("mbxuser")]), "mbxfirst", "mbxsecond", "mbxuser")
  const turns = [user("mbxuser"), answer("mbxanswer"), system("mbxlate"), user("mbxagain")]
  const late = has(render(found, turns), "mbxuser", "mbxanswer", "mbxlate", "mbxagain") &&
    (!leading || has(render(found, [system("mbxsystem"), ...turns]), "mbxsystem", "mbxuser", "mbxanswer", "mbxlate", "mbxagain"))
  const always = !leading ||
    has(render(found, [system("mbxsystem"), user("mbxuser"), answer("mbxanswer")]), "mbxsystem", "mbxuser", "mbxanswer")
  found = { ...found, system: { leading, several, late, always } }
  found = turnsOf(found, render)

  const developer = render(found, [{ role: "developer", content: "mbxdeveloper" }, user("mbxuser")])
  const stranger = attempt(
    [
      new Dict(new Map([["role", "mbxrole"], ["content", "mbxdeveloper"]])),
      ...values([user("mbxuser")], found)
    ],
    toolValues([], found)
  )
  // A template that prints any role by its name does not know this one.
  const known = has(developer, "mbxdeveloper", "mbxuser") && developer !== stranger?.replaceAll("mbxrole", "developer")
  found = { ...found, developer: known, tools: has(render(found, [user("mbxuser")], [tool]), "mbxtool", "mbxparameter") }

  const bare: Tool = { name: "mbxtool" }
  const complete: Preparation = { ...found, completeTools: true }
  if (!has(render(found, [user("mbxuser")], [bare]), "mbxtool") && has(render(complete, [user("mbxuser")], [bare]), "mbxtool")) {
    found = complete
  }

  const union: Tool = { name: "mbxtool", description: "mbxdescription", parameters: unionParameters }
  if (found.tools && !has(render(found, [user("mbxuser")], [union]), "mbxtool", "mbxparameter")) {
    const split: Preparation = { ...found, unionTypes: false }
    if (has(render(split, [user("mbxuser")], [union]), "mbxtool", "mbxparameter")) found = split
  }

  const earlier = (content: string, reasoning?: string) => {
    const fields = new Map<string, Value>([["role", "assistant"], ["content", content]])
    if (reasoning !== undefined) { for (const name of reasoningFields) fields.set(name, reasoning) }
    return attempt(
      [...values([user("mbxuser")], found), new Dict(fields), ...values([user("mbxagain")], found)],
      toolValues([], found)
    )
  }
  const inline = earlier("<think>mbxthought</think>mbxanswer")
  found = {
    ...found,
    takesInlineReasoning: has(inline, "mbxanswer") && (!has(inline, "mbxthought") || inline === earlier("mbxanswer", "mbxthought"))
  }

  const one = call("mbxcall", "mbxid0001")
  const round = [user("mbxuser"), calling(null, one), result(one.id, "mbxresult")]
  const withCalls = (changes: Partial<Preparation["calls"]>): Preparation => ({ ...found, calls: { ...found.calls, ...changes } })
  const printsCall = (preparation: Preparation): boolean => {
    const text = render(preparation, round, [tool])
    return preparation.calls.arguments === "string"
      ? has(text, "mbxcall", one.arguments)
      : has(text, "mbxcall", "mbxcallkey", "mbxcallvalue")
  }
  const shape = callShapes.find((candidate) => printsCall(withCalls(candidate)))
  found = withCalls(shape ?? { arguments: "text" })
  found = { ...found, results: has(render(found, round, [tool]), "mbxresult") }
  const orphan = [user("mbxuser"), result("mbxid0009", "mbxorphan")]
  if (found.results && !has(render(found, orphan, [tool]), "mbxorphan")) {
    const moved: Preparation = { ...found, orphans: false }
    if (has(render(moved, orphan, [tool]), "mbxorphan")) found = moved
  }
  if (shape === undefined) return found

  const other = call("mbxother", "mbxid0002")
  const both = [user("mbxuser"), calling(null, one, other), result(one.id, "mbxresult"), result(other.id, "mbxreply")]
  const parallel = has(render(found, both, [tool]), "mbxcallvalue", "mbxothervalue", "mbxresult", "mbxreply")
  found = withCalls({ parallel })

  const long = call("mbxcall", "call_mbx_0123456789abcdef")
  const longRound = [user("mbxuser"), calling(null, long), result(long.id, "mbxresult")]
  found = withCalls({ shortIds: render(found, longRound, [tool]) === undefined })

  const spoken = [
    user("mbxuser"),
    calling("mbxspoken", one),
    result(one.id, "mbxresult"),
    calling("mbxmore", other),
    result(other.id, "mbxreply")
  ]
  const printsAll = (preparation: Preparation) => has(render(preparation, spoken, [tool]), "mbxspoken", "mbxcall", "mbxmore", "mbxother")
  const apart = withCalls({ apartFromText: true })
  if (!printsAll(found) && printsAll(apart)) found = apart

  const reasoned = spoken.map((message): Message => message.role === "assistant" ? { ...message, reasoning: "mbxreasoning" } : message)
  const withReasoning = render(found, reasoned, [tool]) !== undefined || render(found, spoken, [tool]) === undefined
  return withCalls({ withReasoning })
}
