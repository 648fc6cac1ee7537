import { Context } from "effect"

/** What this server tells clients about the model it serves. */
export interface ServedModelValue {
  readonly id: string
  /** Further names that requests may use; an answer carries the name that its request used. */
  readonly aliases?: ReadonlyArray<string>
  /** Tokens; the engine may run fewer, and then says so when it is ready. */
  readonly contextLength: number
  /** Name of the weights file, without its folder. */
  readonly weights: string
  /** The model's own chat template, where it has one. */
  readonly chatTemplate?: string
  readonly weightsBytes: number
  readonly parameters: number
  readonly slots: number
  readonly cacheRamMib: number
  /** Whether cached prompt starts are reused. */
  readonly prefixCache: boolean
}

/** The one model that this server serves. */
export class ServedModel extends Context.Service<ServedModel, ServedModelValue>()("mashbox/domain/ServedModel") {}

/** Whether a request for `name` is one for this model. */
export const isNamed = (model: ServedModelValue, name: string): boolean => name === model.id || model.aliases?.includes(name) === true
