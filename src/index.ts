/**
 * mashbox as a library: {@link layer} is a whole server, the other layers its parts. Every part can be swapped by providing another
 * layer for its service.
 */
export * as Api from "../schema/Api.ts"
export { Auth } from "./auth/Auth.ts"
export type { Conversation, Message } from "./domain/Conversation.ts"
export * from "./domain/Errors.ts"
export type { GenerationRequest } from "./domain/GenerationRequest.ts"
export type { OutputEvent } from "./domain/OutputEvent.ts"
export { greedy, type Sampling } from "./domain/Sampling.ts"
export { ServedModel } from "./domain/ServedModel.ts"
export { Engine, type EngineListener, type EngineRequest, type EngineResult, type EngineStatus } from "./engine/Engine.ts"
export { layerInProcess } from "./engine/EngineInProcess.ts"
export { layerProcess } from "./engine/EngineProcess.ts"
export { layerScripted } from "./engine/EngineScripted.ts"
export { Admission } from "./generation/Admission.ts"
export { Generation } from "./generation/Generation.ts"
export { layer, layerEngineInProcess, layerEngineProcess, layerModel, layerServerWithoutEngine } from "./Mashbox.ts"
export { ChatTemplate } from "./prompt/ChatTemplate.ts"
export { LongPrompts } from "./prompt/LongPrompts.ts"
export { defaults as defaultSettings, Settings, type SettingsValue } from "./Settings.ts"
export { Tokenizer } from "./tokenizer/Tokenizer.ts"
