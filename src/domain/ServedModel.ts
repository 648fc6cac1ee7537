import { Context } from "effect"
import type { SamplingDefaults } from "./Sampling.ts"

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
  /** What holds where a request says nothing of sampling; absent: greedy. */
  readonly samplingDefaults?: SamplingDefaults
  /** Name of the syntax of its tool calls; absent: the one that its template shows. */
  readonly toolSyntax?: string
  /** Whether cached prompt starts are reused. */
  readonly prefixCache: boolean
}

/** The one model that this server serves. */
export class ServedModel extends Context.Service<ServedModel, ServedModelValue>()("mashbox/domain/ServedModel") {}

/** The served model's sampling defaults, as the dialects take them. */
export const samplingOf = ({ samplingDefaults }: ServedModelValue): { readonly samplingDefaults?: SamplingDefaults } =>
  samplingDefaults === undefined ? {} : { samplingDefaults }

/** Whether a request for `name` is one for this model. */
export const isNamed = (model: ServedModelValue, name: string): boolean => name === model.id || model.aliases?.includes(name) === true
